import { Address } from 'ox';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type {
  RecordedRequests,
  SandboxActions,
  SandboxPools,
  SandboxTransaction,
  SandboxTransactionDetails,
  SandboxTransactions,
  SandboxWallets,
} from '../../../src/sandbox/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { recordStatements } from '../plans.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const receiver = Address.checksum(`0x${'ab'.repeat(20)}`);

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
let wallet: SandboxWallets['data'][number];
beforeEach(async () => {
  await sandbox.reset();
  wallet = (await get<SandboxWallets>('/wallets?search=acme-ethereum')).data[0]!;
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 100_000_000n });
});

async function get<Body>(path: string): Promise<Body> {
  const answer = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: `/_sandbox${path}`, method: 'GET' },
  });
  const body = await answer.body.json();
  expect({ status: answer.statusCode, body }).toMatchObject({ status: 200 });
  return body as Body;
}

const newest = async (): Promise<SandboxTransaction> =>
  (await get<SandboxTransactions>('/transactions')).data[0]!;

const details = async (): Promise<SandboxTransactionDetails> => get(`/transactions/${(await newest()).id}`);

/** Sends any transaction of the wallet on Base. */
async function send(transaction: object): Promise<void> {
  // The clock is frozen, and the list is ordered by time.
  sandbox.clock.advance(1);
  await call(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.id },
    body: { method: 'eth_sendTransaction', caip2: 'eip155:8453', params: { transaction } },
  });
}

async function include(): Promise<void> {
  await sandbox.chains.mine(undefined, 1);
  sandbox.clock.advance(60_000);
  await sandbox.settle();
}

const transfer = (amount: string) =>
  call(sandbox, 'transferFromWallet', {
    path: { wallet_id: wallet.id },
    body: { source: { asset: 'usdc', chain: 'base', amount }, destination: { address: receiver } },
  });

test('a transfer has its amount, its action and the request that caused it', async () => {
  const { body: action } = await transfer('25.5');
  const pending = await newest();
  expect(pending).toMatchObject({
    ...{ method: 'transfer', chain: 'base', caip2: 'eip155:8453', sender: wallet.address },
    transfer: {
      ...{ to: receiver, asset: 'USDC', amount: '25.5', raw_amount: '25500000', token_address: USDC },
    },
    call: { contract: USDC, function: 'transfer' },
    ...{ fee: null, block_number: null, failure_reason: null, is_sponsored: false },
    ...{ wallet_action_id: action.id, wallet_name: 'Acme' },
  });
  const { data: requests } = await get<RecordedRequests>('/requests?operation=transferFromWallet');
  expect(pending.request_id).toBe(requests.at(-1)!.id);

  await include();
  const included = await newest();
  expect(['confirmed', 'finalized']).toContain(included.status);
  expect(included.block_number).toBeGreaterThan(0);
  expect(included.fee!.asset).toBe('ETH');
  const { body: balances } = await call(sandbox, 'getWalletBalance', {
    path: { wallet_id: wallet.id },
    query: { chain: ['base'], asset: ['eth'] } as never,
  });
  expect(Number(balances.balances[0]!.display_values.eth) + Number(included.fee!.amount)).toBeCloseTo(1, 12);
});

test('the details of a transfer have its movements, its decoded logs and its events', async () => {
  await transfer('3');
  expect(await details()).toMatchObject({ movements: [], logs: [] });
  await include();
  const found = await details();
  expect(found).toMatchObject(await newest());
  expect(found.movements).toEqual([
    {
      ...{ from: wallet.address, to: receiver, asset: 'USDC', token_address: USDC },
      ...{ amount: '3', raw_amount: '3000000' },
    },
  ]);
  expect(found.logs.map(({ address, event }) => [address, event?.name])).toEqual([
    [USDC.toLowerCase(), 'Transfer'],
  ]);
  expect(found.logs[0]!.event!.arguments.map(({ value }) => value)).toEqual([
    wallet.address.toLowerCase(),
    receiver.toLowerCase(),
    '3000000',
  ]);
  const types = found.events.map(({ type }) => type);
  expect(types).toContain('transaction.confirmed');
  expect(types).toContain('wallet.funds_withdrawn');
});

test('other transactions are named by what they do', async () => {
  await send({ to: receiver, value: 5 });
  expect(await newest()).toMatchObject({
    ...{ method: 'transfer', call: null, wallet_action_id: null },
    transfer: { to: receiver, asset: 'ETH', raw_amount: '5', amount: '0.000000000000000005' },
  });
  // approve(address,uint256)
  const spender = `${'0'.repeat(24)}${'ab'.repeat(20)}`;
  await send({ to: USDC, data: `0x095ea7b3${spender}${'1'.padStart(64, '0')}` });
  expect(await newest()).toMatchObject({
    method: 'approve',
    transfer: null,
    call: { contract: USDC, function: 'approve' },
  });
  // A call of an address without a contract succeeds.
  await send({ to: receiver, data: '0xdeadbeef', gas_limit: 100_000 });
  expect(await newest()).toMatchObject({ method: '0xdeadbeef', call: { function: '0xdeadbeef' } });
  // A contract without code.
  await send({ data: '0x00', gas_limit: 200_000 });
  expect(await newest()).toMatchObject({ method: 'deploy', call: null, transfer: null });
});

test('a transaction that reverts has the reason', async () => {
  await transfer('1');
  const { caip2, transaction_hash: hash } = await newest();
  await sandbox.chains.steer(caip2, hash!, 'revert');
  await include();
  const reverted = await newest();
  expect(reverted.status).toBe('execution_reverted');
  expect(reverted.failure_reason).toMatch(/\S/);
  expect(reverted.fee!.amount).toMatch(/^0\.0*[1-9]/);
});

test('a transfer on Solana has its amount and its movements', async () => {
  const { data } = await get<SandboxWallets>('/wallets?search=acme-solana');
  const { id, address } = data[0]!;
  await fund(sandbox, address, { chain: 'solana', asset: 'sol', rawAmount: 10n ** 10n });
  const to = 'GKvqsuNcnwWqPzzuhLmGi4rzzh55FhJtGizkhHaEJqiV';
  await call(sandbox, 'transferFromWallet', {
    path: { wallet_id: id },
    body: { source: { asset: 'sol', chain: 'solana', amount: '1.25' }, destination: { address: to } },
  });
  await include();
  const found = await details();
  expect(found).toMatchObject({
    ...{ method: 'transfer', chain: 'solana', logs: [], call: null, wallet_name: 'Acme on Solana' },
    transfer: { to, asset: 'SOL', amount: '1.25', token_address: null },
    fee: { asset: 'SOL' },
  });
  expect(found.movements).toContainEqual(expect.objectContaining({ to, asset: 'SOL', amount: '1.25' }));
});

test('an action has its amount, its steps and the request that started it', async () => {
  const { body: action } = await transfer('25.5');
  const newestAction = async () => (await get<SandboxActions>('/wallet_actions')).data[0]!;
  const { data: requests } = await get<RecordedRequests>('/requests?operation=transferFromWallet');
  expect(await newestAction()).toMatchObject({
    ...{ id: action.id, wallet_name: 'Acme', amount: '25.5', asset: 'USDC', chain: 'base', to: receiver },
    ...{ request_id: requests.at(-1)!.id, steps: [{ type: 'evm_transaction', status: 'pending' }] },
  });
  await include();
  const { transaction_hash: hash } = await newest();
  const ended = await newestAction();
  expect(ended).toMatchObject({
    status: 'succeeded',
    steps: [{ status: 'confirmed', transaction_hash: hash }],
  });
});

test('a swap has the amount that it spends', async () => {
  await call(sandbox, 'executeWalletSwap', {
    path: { wallet_id: wallet.id },
    body: {
      source: { asset_address: USDC, caip2: 'eip155:8453' },
      destination: { asset_address: 'native' },
      base_amount: '10000000',
    },
  });
  const pending = (await get<SandboxActions>('/wallet_actions')).data[0];
  expect(pending).toMatchObject({ type: 'swap', status: 'pending', asset: 'USDC', chain: 'base' });
  await include();
  const ended = (await get<SandboxActions>('/wallet_actions')).data[0];
  expect(ended).toMatchObject({ type: 'swap', status: 'succeeded', amount: '10', asset: 'USDC' });
});

test('an unknown transaction is not found', async () => {
  const { statusCode, body } = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: '/_sandbox/transactions/nothing', method: 'GET' },
  });
  await body.dump();
  expect(statusCode).toBe(404);
});

test('requests that are no longer recorded are not named', async () => {
  await transfer('1');
  const { body } = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: '/_sandbox/requests', method: 'DELETE' },
  });
  await body.dump();
  expect((await newest()).request_id).toBeNull();
});

test('the list takes the same number of statements whatever its length', async () => {
  const kysely = sandbox.database.orm.em.fork().getKysely<Tables>();
  /** The least of three, because jobs may send statements at the same time. */
  const statementsOf = async (): Promise<number> => {
    const counts: number[] = [];
    while (counts.length < 3) {
      counts.push((await recordStatements(kysely, () => get('/transactions'))).length);
    }
    return Math.min(...counts);
  };
  await transfer('1');
  const one = await statementsOf();
  expect(one).toBeGreaterThan(0);
  for (let count = 0; count < 5; count += 1) await transfer('1');
  expect(await statementsOf()).toBe(one);
});

describe('pools', () => {
  const WETH = '0x4200000000000000000000000000000000000006';
  const FACTORY = '0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f';
  const ether = 10n ** 18n;

  const swap = (from: string, to: string, amount: bigint) =>
    call(sandbox, 'executeWalletSwap', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset_address: from, caip2: 'eip155:8453' },
        destination: { asset_address: to },
        base_amount: String(amount),
      },
    });
  const etherPool = ({ data }: SandboxPools) =>
    data.find(({ assets }) => assets.map(({ symbol }) => symbol).join() === 'WETH,USDC')!;
  const bigints = (texts: readonly string[]) => texts.map(BigInt) as [bigint, bigint];

  test('a swap moves the reserves and the price of its pool by the formula of the pool', async () => {
    const before = etherPool(await get('/pools'));
    expect(before).toMatchObject({ chain: 'base', price: '3000', fee_bps: 30, trades: [] });
    expect(before.assets[1]).toMatchObject({ token_address: USDC, reserve: '1000000', decimals: 6 });

    await swap('native', USDC, ether / 2n);
    await include();
    const hash = (await newest()).transaction_hash!;
    const { data } = await get<SandboxPools>(`/pools?chain=base&transaction_hash=${hash}`);
    expect(data.map(({ address }) => address)).toEqual([before.address]);
    const [trade, ...others] = data[0]!.trades;
    expect(others).toEqual([]);
    const [paid, received] = [bigints(trade!.raw_in), bigints(trade!.raw_out)];
    const [x, y] = bigints(trade!.raw_reserves_before);
    expect([x, y]).toEqual(before.assets.map(({ raw_reserve: raw }) => BigInt(raw)));
    expect([paid, received[0]]).toEqual([[ether / 2n, 0n], 0n]);
    expect(received[1]).toBe((y * paid[0] * 997n) / (x * 1000n + paid[0] * 997n));
    const after = bigints(trade!.raw_reserves_after);
    expect(after).toEqual([x + paid[0], y - received[1]]);
    expect(trade!.price_before).toBe('3000');
    expect(Number(trade!.price_after)).toBeCloseTo(Number(after[1]) / 1e6 / (Number(after[0]) / 1e18), 6);

    const now = etherPool(await get('/pools?chain=eip155:8453'));
    expect([now.price, now.trades]).toEqual([trade!.price_after, []]);
    expect(now.assets.map(({ raw_reserve: raw }) => BigInt(raw))).toEqual(after);

    // A trade in the other direction, whose reserves are those that the first one left.
    await swap(USDC, WETH, 50_000_000n);
    await include();
    // The swap follows an approval.
    const { data: sent } = await get<SandboxTransactions>('/transactions');
    const next = sent.find(({ call: made }) => made?.function === 'swapExactTokensForTokens')!
      .transaction_hash!;
    const [back] = (await get<SandboxPools>(`/pools?transaction_hash=${next}`)).data[0]!.trades;
    expect(back!.raw_in).toEqual(['0', '50000000']);
    expect(bigints(back!.raw_reserves_before)).toEqual(after);
  });

  test('a pool without reserves has no price, and other transactions have no pools', async () => {
    const token = 'cd'.repeat(20);
    const words = [USDC.slice(2), token].map((address) => address.toLowerCase().padStart(64, '0'));
    // createPair(address,address)
    await send({ to: FACTORY, data: `0xc9c65396${words.join('')}` });
    await include();
    const made = (await get<SandboxPools>('/pools?chain=base')).data.at(-1)!;
    expect(made).toMatchObject({ price: null, trades: [] });
    expect(made.assets.map(({ symbol, raw_reserve: raw }) => [symbol, raw])).toEqual([
      ['USDC', '0'],
      [null, '0'],
    ]);
    const hash = (await newest()).transaction_hash!;
    expect(await get(`/pools?transaction_hash=${hash}`)).toEqual({ data: [] });
    expect(await get(`/pools?transaction_hash=0x${'0'.repeat(64)}`)).toEqual({ data: [] });
  });

  test.each([
    ['chain=solana', '/chain'],
    ['chain=nowhere', '/chain'],
    ['transaction_hash=0x12', 'transaction_hash'],
  ])('refuses %s by its name', async (query, named) => {
    const answer = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: `/_sandbox/pools?${query}`, method: 'GET' },
    });
    const { error } = (await answer.body.json()) as { error: string };
    expect(answer.statusCode).toBe(400);
    expect(error).toContain(named);
  });
});
