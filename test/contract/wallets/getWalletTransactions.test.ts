import { encodeFunctionData, erc20Abi, getAddress, type Hex } from 'viem';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Wallet, WalletRpcRequest, WalletTransaction } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { fund, fundToken } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const stranger = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const ether = 10n ** 18n;

let sandbox: TestSandbox;
let wallet: Wallet;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
});

async function list(query: object, id = wallet.id) {
  const input = { path: { wallet_id: id }, query: { chain: 'base', ...query } };
  return (await call(sandbox, 'getWalletTransactions', input as never)).body;
}

async function refused(query: object): Promise<string> {
  const input = { path: { wallet_id: wallet.id }, query };
  const { status, body } = await refusal(sandbox, 'getWalletTransactions', input);
  return `${status} ${body.code} ${body.error}`;
}

async function send(transaction: object): Promise<{ hash: string; transaction_id: string }> {
  const body = { method: 'eth_sendTransaction', caip2, params: { transaction } } as WalletRpcRequest;
  const answer = await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  return answer.body.data as { hash: string; transaction_id: string };
}

const tokenTransfer = (to: string, amount: bigint) => ({
  to: usdc,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, amount] }),
});

test('a new wallet has an empty list', async () => {
  expect(await list({ asset: 'eth' })).toEqual({ transactions: [], next_cursor: null });
});

test('received and sent transfers, newest first, with the users of both sides and a formatted amount', async () => {
  const { body: user } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'carol@example.com' }] },
  });
  const { body: hers } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { user_id: user.id } },
  });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  const fundedMs = sandbox.clock.now();
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 2_000_000n });
  await waitSeconds(sandbox, 60);
  const sentMs = sandbox.clock.now();
  const { hash, transaction_id: id } = await send(tokenTransfer(hers.address, 1_500_000n));
  await waitSeconds(sandbox, 10);
  const moved = {
    chain: 'base',
    asset: 'usdc',
    raw_value: '1500000',
    raw_value_decimals: 6,
    display_values: { usdc: '1.5' },
    sender: wallet.address,
    sender_service_user_id: null,
    recipient: hers.address,
    recipient_service_user_id: user.id,
  };
  const { transactions, next_cursor: next } = await list({ asset: 'usdc' });
  expect(next).toBeNull();
  const [outgoing, deposit] = transactions;
  expect(outgoing).toEqual({
    wallet_id: wallet.id,
    service_transaction_id: id,
    caip2,
    transaction_hash: hash,
    status: 'confirmed',
    created_at: sentMs,
    sponsored: false,
    details: { type: 'transfer_sent', ...moved },
  });
  expect(deposit).toMatchObject({
    wallet_id: wallet.id,
    service_transaction_id: null,
    status: 'confirmed',
    details: { type: 'transfer_received', recipient: wallet.address, raw_value: '2000000' },
  });
  expect(Math.abs(deposit!.created_at - fundedMs)).toBeLessThan(60_000);
  expect(transactions).toHaveLength(2);
  // The same transfer for the recipient, whose wallet did not send it.
  expect((await list({ token: usdc.toLowerCase() }, hers.id)).transactions).toEqual([
    {
      wallet_id: hers.id,
      service_transaction_id: null,
      caip2,
      transaction_hash: hash,
      status: 'confirmed',
      created_at: expect.any(Number),
      details: { type: 'transfer_received', ...moved },
    },
  ]);
});

test('filters by asset and by hash in any letter case; transactions that are not transfers are listed under the fee asset', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 10n });
  const approval = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [stranger as Hex, 1n],
  });
  const approved = await send({ to: usdc, data: approval });
  const moved = await send({ to: stranger, value: 5 });
  const token = await send(tokenTransfer(stranger, 3n));
  await waitSeconds(sandbox, 10);
  const own = ({ transactions }: { transactions: readonly WalletTransaction[] }) =>
    transactions.flatMap(({ service_transaction_id: id }) => id ?? []);
  expect(new Set(own(await list({ asset: 'eth' })))).toEqual(
    new Set([moved.transaction_id, approved.transaction_id]),
  );
  expect(own(await list({ asset: 'usdc' }))).toEqual([token.transaction_id]);
  const both = await list({ asset: ['eth', 'usdc'] });
  expect(both.transactions).toHaveLength(5);
  const named = await list({ asset: ['eth', 'usdc'], tx_hash: `0x${moved.hash.slice(2).toUpperCase()}` });
  expect(own(named)).toEqual([moved.transaction_id]);
  expect(named.transactions).toHaveLength(1);
  const approvals = await list({ asset: 'eth', tx_hash: approved.hash });
  // The contract that was called, and nothing sent along.
  const called = { type: 'transfer_sent', asset: 'eth', sender: wallet.address, recipient: usdc };
  expect(approvals.transactions).toMatchObject([
    { details: { ...called, raw_value: '0', raw_value_decimals: 18, display_values: { eth: '0' } } },
  ]);
  const deposit = both.transactions.find(({ details }) => details?.type === 'transfer_received');
  expect((await list({ asset: ['eth', 'usdc'], tx_hash: deposit!.transaction_hash! })).transactions).toEqual([
    deposit,
  ]);
  expect(await list({ asset: 'eth', tx_hash: `0x${'0'.repeat(64)}` })).toEqual({
    transactions: [],
    next_cursor: null,
  });
});

test('pages of any size show everything once and in one order', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  for (let round = 0; round < 4; round += 1) {
    await send({ to: stranger, value: round + 1 });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: BigInt(round + 100) });
    await waitSeconds(sandbox, 7);
  }
  const keysOf = (transactions: readonly WalletTransaction[]) =>
    transactions.map(({ transaction_hash: hash, details }) => `${hash} ${details?.raw_value}`);
  const whole = keysOf((await list({ asset: 'eth' })).transactions);
  expect(new Set(whole).size).toBe(9);
  for (const limit of [1, 2, 3, 8, 9]) {
    const paged: string[] = [];
    const cursors = new Set<string>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await list({ asset: 'eth', limit, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.transactions.length).toBeGreaterThan(0);
      paged.push(...keysOf(page.transactions));
      cursor = page.next_cursor;
      if (cursor !== null) expect(cursors.has(cursor)).toBe(false);
      if (cursor !== null) cursors.add(cursor);
    }
    expect(paged).toEqual(whole);
  }
});

test('a wallet that sent more than one page of the chain still shows earlier deposits', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  for (let count = 0; count < 110; count += 1) await send({ to: stranger, value: 1 });
  await waitSeconds(sandbox, 10);
  const first = await list({ asset: 'eth', limit: 100 });
  expect(first.transactions).toHaveLength(100);
  const second = await list({ asset: 'eth', limit: 100, cursor: first.next_cursor });
  expect(second.transactions).toHaveLength(11);
  expect(second.transactions.at(-1)?.details?.type).toBe('transfer_received');
  expect(second.next_cursor).toBeNull();
});

test('Solana: a token without a name in the contract is found by its mint', async () => {
  const { body: solana } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  const mint = 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263';
  await fundToken(sandbox, solana.address, {
    chain: 'solana',
    tokenAddress: mint,
    rawAmount: 12_345n,
    decimals: 3,
    symbol: 'T',
  });
  const { transactions } = await list({ chain: 'solana', token: mint }, solana.id);
  expect(transactions.map(({ details }) => details)).toMatchObject([
    { type: 'transfer_received', asset: mint, raw_value: '12345', display_values: { [mint]: '12.345' } },
  ]);
});

test('a replaced transaction that was no plain transfer says what it called', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: ether });
  await send({ to: `0x${'ab'.repeat(16)}dead0002`, data: '0x01' });
  await send({ to: stranger, data: '0x01', value: 7 });
  await waitSeconds(sandbox, 60);
  const { transactions } = await list({ asset: 'eth' });
  const own = transactions.filter(({ service_transaction_id: id }) => id !== null);
  const replaced = own.find(({ status }) => status === 'replaced');
  expect(replaced?.details).toMatchObject({
    ...{ recipient: getAddress(`0x${'ab'.repeat(16)}dead0002`), raw_value: '0' },
  });
  const called = own.find(({ status }) => status !== 'replaced');
  expect(called?.details).toMatchObject({ type: 'transfer_sent', recipient: stranger, raw_value: '7' });
});

test('unsupported filters are refused with a reason', async () => {
  expect(await refused({ chain: 'base' })).toBe('400 invalid_data asset: expected either `asset` or `token`');
  expect(await refused({ chain: 'base', asset: 'eth', token: usdc })).toMatch(/^400 invalid_data asset/);
  expect(await refused({ asset: 'eth' })).toMatch(/^400 invalid_data .*chain/);
  expect(await refused({ chain: 'solana', asset: 'sol' })).toMatch(/^400 not_supported chain: `solana`/);
  expect(await refused({ chain: 'base', asset: 'pol' })).toMatch(/^400 not_supported asset: no `pol`/);
  expect(await refused({ chain: 'base', token: `base:${usdc}` })).toMatch(/^400 invalid_data token/);
  expect(await refused({ chain: 'base', token: '0x12' })).toMatch(/^400 invalid_data /);
  for (const cursor of ['x', 'bnVsbA', 'WzEsMiwzXQ', Buffer.from('[1,"a","-1"]').toString('base64url')]) {
    expect(await refused({ chain: 'base', asset: 'eth', cursor })).toMatch(/^400 invalid_data cursor/);
  }
});

test('an archived wallet is found only on request', async () => {
  await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
  const { status } = await refusal(sandbox, 'getWalletTransactions', {
    path: { wallet_id: wallet.id },
    query: { chain: 'base', asset: 'eth' },
  });
  expect(status).toBe(404);
  expect(await list({ asset: 'eth', include_archived: true })).toEqual({
    transactions: [],
    next_cursor: null,
  });
});
