import { getAddress } from 'viem';
import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { fund, fundToken } from '../../support/fund.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const path = { wallet_id: 'ext_wal_acme-ethereum' };
const solanaPath = { wallet_id: 'ext_wal_acme-solana' };
const strange = getAddress('0xc0ffee00000000000000000000000000c0ffee00');

async function addressOf(sandbox: TestSandbox, at = path): Promise<string> {
  return (await call(sandbox, 'getWallet', { path: at })).body.address;
}

test('the balances of a new wallet are zero', async () => {
  await using sandbox = await startSandbox();
  const { body } = await call(sandbox, 'getWalletBalance', { path, query: { asset: 'eth', chain: 'base' } });
  expect(body).toEqual({
    balances: [
      { chain: 'base', asset: 'eth', raw_value: '0', raw_value_decimals: 18, display_values: { eth: '0' } },
    ],
  });
});

test('deposits are reported to the last unit, with their value on request', async () => {
  await using sandbox = await startSandbox();
  const address = await addressOf(sandbox);
  await fund(sandbox, address, { chain: 'base', asset: 'usdc', rawAmount: 1_500_000n });
  await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 2n * 10n ** 18n + 1n });
  const query = { asset: ['usdc' as const, 'eth' as const], chain: 'base' };
  const usdc = { chain: 'base', asset: 'usdc', raw_value: '1500000', raw_value_decimals: 6 };
  const eth = { chain: 'base', asset: 'eth', raw_value: '2000000000000000001', raw_value_decimals: 18 };
  expect((await call(sandbox, 'getWalletBalance', { path, query })).body.balances).toEqual([
    { ...usdc, display_values: { usdc: '1.5' } },
    { ...eth, display_values: { eth: '2.000000000000000001' } },
  ]);
  const inUsd = await call(sandbox, 'getWalletBalance', {
    path,
    query: { ...query, include_currency: 'usd' },
  });
  expect(inUsd.body.balances).toEqual([
    { ...usdc, display_values: { usdc: '1.5', usd: '1.50' } },
    { ...eth, display_values: { eth: '2.000000000000000001', usd: '6000.00' } },
  ]);
  // 1 EURC costs 1.1 US dollars: 1.5 / 1.1 and 6000 / 1.1.
  const inEur = await call(sandbox, 'getWalletBalance', {
    path,
    query: { ...query, include_currency: 'eur' },
  });
  expect(inEur.body.balances.map(({ display_values }) => display_values.eur)).toEqual(['1.36', '5454.55']);
});

test('pairs of assets and chains are returned in order, without pairs that do not exist', async () => {
  await using sandbox = await startSandbox();
  const query = { asset: ['pol' as const, 'usdc' as const], chain: ['base', 'polygon', 'base'] };
  const { body } = await call(sandbox, 'getWalletBalance', { path, query });
  expect(body.balances.map(({ chain, asset }) => `${asset} ${chain}`)).toEqual([
    'pol polygon',
    'usdc base',
    'usdc polygon',
  ]);
});

test('assets on a test network are worth nothing', async () => {
  await using sandbox = await startSandbox();
  await fund(sandbox, await addressOf(sandbox), { chain: 'sepolia', asset: 'eth', rawAmount: 10n ** 18n });
  const query = { asset: 'eth' as const, chain: 'sepolia', include_currency: 'usd' as const };
  const { body } = await call(sandbox, 'getWalletBalance', { path, query });
  expect(body.balances[0]?.display_values).toEqual({ eth: '1', usd: '0' });
});

test('a token is identified by its address, in any letter case', async () => {
  await using sandbox = await startSandbox();
  const address = await addressOf(sandbox);
  await fund(sandbox, address, { chain: 'base', asset: 'usdc', rawAmount: 7n });
  await fundToken(sandbox, address, {
    chain: 'base',
    tokenAddress: strange,
    rawAmount: 123_456n,
    decimals: 3,
    symbol: 'USDC',
  });
  const token = [`base:${strange.toLowerCase()}`, 'base:0x833589FCD6EDB6E08F4C7C32D4F71B54BDA02913'];
  const { body } = await call(sandbox, 'getWalletBalance', {
    path,
    query: { token, include_currency: 'usd' },
  });
  expect(body.balances).toEqual([
    {
      chain: 'base',
      // Identified by its address, whatever its symbol, and without a known price.
      asset: strange,
      raw_value: '123456',
      raw_value_decimals: 3,
      display_values: { [strange]: '123.456' },
    },
    {
      chain: 'base',
      asset: 'usdc',
      raw_value: '7',
      raw_value_decimals: 6,
      display_values: { usdc: '0.000007', usd: '0.00' },
    },
  ]);
});

test('a Solana wallet holds lamports and mints', async () => {
  await using sandbox = await startSandbox();
  const address = await addressOf(sandbox, solanaPath);
  await fund(sandbox, address, { chain: 'solana', asset: 'sol', rawAmount: 1_234_567_890n });
  await fund(sandbox, address, { chain: 'solana', asset: 'usdc', rawAmount: 42n });
  const { body } = await call(sandbox, 'getWalletBalance', {
    path: solanaPath,
    query: { asset: ['sol', 'usdc'], chain: 'solana' },
  });
  expect(body.balances.map(({ display_values }) => display_values)).toEqual([
    { sol: '1.23456789' },
    { usdc: '0.000042' },
  ]);
});

test('a custodial wallet has a balance on its own chain only', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'createCustodialWallet', {
    body: { provider: 'bridge', provider_user_id: 'cust_1', chain: 'base' },
  });
  const own = { wallet_id: wallet.id };
  const query = { asset: 'usdc' as const, chain: 'base' };
  expect((await call(sandbox, 'getWalletBalance', { path: own, query })).body.balances).toHaveLength(1);
  expect(
    await refusal(sandbox, 'getWalletBalance', { path: own, query: { ...query, chain: 'polygon' } }),
  ).toEqual({
    status: 400,
    body: { error: 'chain: the custodian holds this wallet on `base`', code: 'not_supported' },
  });
});

const coffee = `base:${strange}`;
test.each([
  ['an asset without a chain', { asset: 'eth' }, 'invalid_data', 'chain: expected together with `asset`'],
  [
    'a chain without an asset',
    { chain: 'base' },
    'invalid_data',
    'asset: expected `asset` with `chain`, or `token`',
  ],
  ['nothing', {}, 'invalid_data', 'asset: expected `asset` with `chain`, or `token`'],
  [
    'both ways',
    { asset: 'eth', token: coffee },
    'invalid_data',
    'token: expected `token` or `asset`, not both',
  ],
  [
    'a token and a chain',
    { chain: 'base', token: coffee },
    'invalid_data',
    'chain: expected no `chain` with `token`, which contains the chain',
  ],
  [
    'a token without an address',
    { token: 'base:x' },
    'invalid_data',
    'token: expected `<chain>:<address>`, got `base:x`',
  ],
  ['an invalid token', { token: coffee }, 'not_supported', `no readable token at \`${strange}\` on \`base\``],
  ['a token nowhere', { token: 'nowhere:x' }, 'not_supported', 'token: no chain of this name in `nowhere:x`'],
  [
    'an unknown chain',
    { asset: 'eth', chain: 'nowhere' },
    'not_supported',
    'chain: `nowhere` is not supported',
  ],
  [
    'a chain of another type',
    { asset: 'sol', chain: 'solana' },
    'not_supported',
    'chain: `solana` is not a chain of ethereum wallets',
  ],
  [
    'an asset on no such chain',
    { asset: 'pol', chain: ['base', 'linea'] },
    'not_supported',
    'asset: no `pol` on `base`, `linea`',
  ],
])('%s is refused', async (_, query, code, error) => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'getWalletBalance', { path, query });
  expect({ status, code: body.code, error: body.error }).toEqual({ status: 400, code, error });
});

test('a wallet of another app is not found, an archived one only on request', async () => {
  await using sandbox = await startSandbox();
  const query = { asset: 'eth' as const, chain: 'base' };
  const absent = { status: 404, body: { error: 'Wallet not found' } };
  expect(await refusal(await asOtherApp(sandbox), 'getWalletBalance', { path, query })).toEqual(absent);
  await call(sandbox, 'archiveWallet', { path });
  expect(await refusal(sandbox, 'getWalletBalance', { path, query })).toEqual(absent);
  const archived = await call(sandbox, 'getWalletBalance', {
    path,
    query: { ...query, include_archived: true },
  });
  expect(archived.body.balances).toHaveLength(1);
});
