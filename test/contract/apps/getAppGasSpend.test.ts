import { encodeFunctionData, erc20Abi, formatUnits, parseUnits } from 'viem';
import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const path = { wallet_id: 'ext_wal_acme-ethereum' };
const day = 24 * 60 * 60 * 1000;

test('an app that sponsored nothing spent nothing', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const body = {
    source: { asset: 'eth', chain: 'base', amount: '0.1' },
    destination: { address: wallet.address },
  };
  // The wallet pays its gas itself.
  await call(sandbox, 'transferFromWallet', { path, body });
  const now = sandbox.clock.now();
  const query = {
    wallet_ids: [wallet.id, 'unknown'],
    start_timestamp: now - day,
    end_timestamp: now + day,
  };
  expect((await call(sandbox, 'getAppGasSpend', { query })).body).toEqual({ value: '0', currency: 'usd' });
});

test('the gas that the app sponsored is summed and equals the amounts of its events', async () => {
  await using sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 1_000_000n });
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [receiver, 1n] });
  const body = {
    method: 'eth_sendTransaction',
    caip2: 'eip155:8453',
    sponsor: true,
    params: { transaction: { to: usdcOnBase, data } },
  } as const;
  const startMs = sandbox.clock.now();
  for (let count = 0; count < 2; count += 1) {
    await call(sandbox, 'walletRpc', { path, body });
    await waitSeconds(sandbox, 10);
  }
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>(
      "select payload from outbox_events where type = 'usage.gas_sponsorship.recorded'",
    );
  const reported = rows.map(({ payload }) => (JSON.parse(payload) as { amount_usd: string }).amount_usd);
  expect(reported).toHaveLength(2);
  const sum = reported.reduce((total, amount) => total + parseUnits(amount, 24), 0n);
  expect(sum).toBeGreaterThan(0n);
  const spend = async (wallet_ids: string[], start_timestamp: number) => {
    const query = { wallet_ids, start_timestamp, end_timestamp: startMs + day };
    return (await call(sandbox, 'getAppGasSpend', { query })).body;
  };
  expect(await spend([wallet.id, 'unknown'], startMs)).toEqual({
    value: formatUnits(sum, 24),
    currency: 'usd',
  });
  // The first was made at the beginning of the span, which counts.
  const second = formatUnits(parseUnits(reported[1]!, 24), 24);
  expect(await spend([wallet.id], startMs + 1)).toEqual({ value: second, currency: 'usd' });
  expect(await spend(['unknown'], startMs)).toEqual({ value: '0', currency: 'usd' });
});

test.each([
  [{ start_timestamp: 2, end_timestamp: 2 }, 'end_timestamp: expected a time after `start_timestamp`'],
  [{ start_timestamp: 0, end_timestamp: 30 * day + 1 }, 'end_timestamp: expected at most 30 days in all'],
  [{ start_timestamp: 0, end_timestamp: 2 ** 53 }, 'end_timestamp: must have the format unix-ms'],
])('%o is refused', async (span, error) => {
  await using sandbox = await startSandbox();
  const { status, body } = await refusal(sandbox, 'getAppGasSpend', {
    query: { wallet_ids: ['x'], ...span },
  });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error,
  });
});
