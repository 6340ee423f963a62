import { Address } from 'ox';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type {
  RecordedRequests,
  SandboxActions,
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
