import type { SqlEntityManager } from '@mikro-orm/sql';
import { encodeFunctionData, erc20Abi, type Hex, parseGwei } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ChainUnavailableError } from '../../../src/adapters/outside-services.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { EthereumSendTransactionRpcResponseData, Wallet } from '../../../src/generated/schemas.ts';
import { followTransactions } from '../../../src/jobs/follow-transactions.ts';
import { pullBack } from '../../../src/jobs/pull-back-checks.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { caip2, type ScriptedChain, scriptChain } from '../../support/scripted-chain.ts';

const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const token = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const payment = { to: receiver, value: '0x2386f26fc10000' } as const;
const second = 1000;

describe.each(databaseKinds)('on %s', (kind) => {
  let operations: TestOperations;
  let chain: ScriptedChain;
  let wallet: Wallet;

  beforeEach(async () => {
    chain = scriptChain();
    operations = await openOperations(kind, { chains: chain });
    wallet = await createWallet(operations);
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  const send = (transaction: object = payment, extra: object = {}, options: object = {}) =>
    rpc(operations, wallet.id, transaction, extra, options);
  const sent = async (transaction: object = payment, extra: object = {}) =>
    dataOf(await send(transaction, extra));
  const statusOf = async (id: string) =>
    (await operations.run('getTransaction', { path: { transaction_id: id } })).body;
  const follow = (served = operations) => runJob(served);
  const eventsOf = () => readEvents(operations);

  test('missing fields are filled in, and viem reads them from the bytes', async () => {
    const { status, body } = await send(payment, { reference_id: 'invoice-2041' });
    expect(status).toBe(200);
    const [seen] = chain.broadcasts;
    expect(body).toEqual({
      method: 'eth_sendTransaction',
      data: {
        hash: seen?.hash,
        caip2,
        transaction_id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
        reference_id: 'invoice-2041',
        transaction_request: {
          ...payment,
          from: wallet.address,
          type: 2,
          chain_id: 31337,
          nonce: 0,
          gas_limit: '0x5208',
          max_fee_per_gas: '0x77359400',
          max_priority_fee_per_gas: '0x3b9aca00',
        },
      },
    });
    expect(seen).toEqual({
      hash: seen?.hash,
      sender: wallet.address,
      nonce: 0,
      transaction: expect.objectContaining({
        type: 'eip1559',
        chainId: 31337,
        to: receiver.toLowerCase(),
        value: 10n ** 16n,
        gas: 21_000n,
        maxFeePerGas: parseGwei('2'),
        maxPriorityFeePerGas: parseGwei('1'),
      }),
    });
    const id = dataOf({ status, body }).transaction_id!;
    const transaction = {
      id,
      wallet_id: wallet.id,
      caip2,
      transaction_hash: seen?.hash,
      status: 'broadcasted',
      created_at: operations.clock.nowMs,
      reference_id: 'invoice-2041',
      sponsored: false,
    };
    expect(await statusOf(id)).toEqual(transaction);
    const found = await operations.run('listTransactionsByReference', {
      query: { reference_id: 'invoice-2041' },
    });
    expect(found.body).toEqual({ transactions: [transaction] });
  });

  test.each([
    [{ type: 0 }, { type: 'legacy', gasPrice: parseGwei('2') }],
    [{ type: 1 }, { type: 'eip2930', gasPrice: parseGwei('2') }],
    [{ gas_price: '0x10' }, { type: 'legacy', gasPrice: 16n }],
    [{ max_fee_per_gas: 5 }, { type: 'eip1559', maxFeePerGas: 5n, maxPriorityFeePerGas: 5n }],
    [
      { max_priority_fee_per_gas: '0xb2d05e00' },
      { type: 'eip1559', maxFeePerGas: parseGwei('4'), maxPriorityFeePerGas: parseGwei('3') },
    ],
    [
      { gas_limit: 50_000, nonce: 7 },
      { gas: 50_000n, nonce: 7 },
    ],
  ])('given fields are kept: %j', async (given, expected) => {
    await sent({ ...payment, ...given });
    expect(chain.broadcasts[0]?.transaction).toMatchObject(expected);
  });

  test('a chain without EIP-1559 gets a legacy transaction, and a call a fifth more gas than estimated', async () => {
    chain.suggested = { maxFeePerGas: 7n, maxPriorityFeePerGas: undefined };
    chain.simulation = { succeeds: true, units: 50_000n };
    await sent({ to: token, data: '0xa9059cbb' }, { experimental_data_suffix: '0xbeef' });
    expect(chain.broadcasts[0]?.transaction).toMatchObject({
      type: 'legacy',
      chainId: 31337,
      gasPrice: 7n,
      gas: 60_000n,
      data: '0xa9059cbbbeef',
    });
  });

  test.each([
    [{ ...payment, chain_id: 1 }, '/params/transaction/chain_id', 'invalid_data'],
    [{ ...payment, from: receiver }, '/params/transaction/from', 'invalid_data'],
    [{ ...payment, value: -1 }, '/params/transaction/value', 'invalid_data'],
    [{ ...payment, nonce: '0xffffffffffffffff' }, '/params/transaction/nonce', 'invalid_data'],
  ])('%j is refused at %s', async (transaction, pointer, code) => {
    const { status, body } = await send(transaction);
    expect({ status, body }).toMatchObject({ status: 400, body: { code } });
    expect(JSON.stringify(body)).toContain(pointer);
    expect(chain.broadcasts).toEqual([]);
  });

  test('chains of another kind and chains that are not configured have different errors', async () => {
    const foreign = { caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' };
    expect((await send(payment, foreign)).body).toMatchObject({ code: 'invalid_data' });
    expect((await send(payment, { caip2: 'eip155:999999' })).body).toMatchObject({ code: 'not_supported' });
  });

  test('concurrent sends use different nonces', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => sent()));
    expect(chain.broadcasts.map(({ nonce }) => nonce).sort((a, b) => a - b)).toEqual([...Array(10).keys()]);
    expect(new Set(answers.map(({ hash }) => hash)).size).toBe(10);
    expect(await nextNonce()).toBe(10);
  });

  async function nextNonce(): Promise<number> {
    await sent();
    return chain.broadcasts.at(-1)!.nonce;
  }

  async function signedNonce(value: number): Promise<unknown> {
    const { transaction_request: request } = await sent({ to: receiver, value });
    return (request as { nonce?: unknown }).nonce;
  }

  test('a replay under an idempotency key returns the first response and sends nothing, whatever the chain reports now', async () => {
    const first = await send(payment, {}, { idempotencyKey: 'k1' });
    chain.isDown = true;
    expect(await send(payment, {}, { idempotencyKey: 'k1' })).toEqual(first);
    chain.isDown = false;
    chain.simulation = { succeeds: false, reason: 'reverts', message: 'no' };
    expect(await send(payment, {}, { idempotencyKey: 'k1' })).toEqual(first);
    expect(chain.broadcasts).toHaveLength(1);
  });

  test('chain unreachable before signing: nothing is stored, and a retry sends', async () => {
    chain.isDown = true;
    const { status, body } = await send(payment, {}, { idempotencyKey: 'k1' });
    expect({ status, body }).toEqual({
      status: 400,
      body: {
        error: 'the chain could not be reached; nothing was signed or sent',
        code: 'transaction_broadcast_failure',
      },
    });
    expect(await rowCount(operations)).toBe(0);
    chain.isDown = false;
    expect((await send(payment, {}, { idempotencyKey: 'k1' })).status).toBe(200);
    expect(chain.broadcasts).toHaveLength(1);
  });

  test('chain unreachable at the broadcast: the request succeeds, pending, and the same bytes are broadcast later, once', async () => {
    chain.duringBroadcast = () => Promise.reject(new Error('socket hang up'));
    const { hash, transaction_id: id } = await sent();
    chain.broadcasts.length = 0;
    expect(await statusOf(id!)).toMatchObject({ status: 'pending', transaction_hash: hash });
    chain.duringBroadcast = async () => undefined;
    await follow();
    expect(chain.broadcasts).toEqual([]);
    operations.clock.nowMs += 15 * second;
    await follow();
    await follow();
    expect(chain.broadcasts.map((seen) => seen.hash)).toEqual([hash]);
    expect(await statusOf(id!)).toMatchObject({ status: 'broadcasted', transaction_hash: hash });
    // The next one follows behind it.
    expect(await nextNonce()).toBe(1);
  });

  test.each([
    ['insufficient_funds', 'insufficient_funds'],
    ['reverts', 'transaction_execution_failure'],
    ['underpriced', 'transaction_broadcast_failure'],
    ['stale', 'transaction_broadcast_failure'],
    ['invalid', 'transaction_broadcast_failure'],
  ] as const)('refused by the chain as %s: %s, failed, and the nonce is free', async (reason, code) => {
    chain.refusals.push({ isAccepted: false, reason, message: 'said the node' });
    const { status, body } = await send(payment, { reference_id: 'r' }, { idempotencyKey: 'k1' });
    expect({ status, body }).toMatchObject({ status: 400, body: { code } });
    // The refusal is the stored response: nothing is sent a second time.
    const again = await send(payment, { reference_id: 'r' }, { idempotencyKey: 'k1' });
    expect(again).toEqual({ status, body });
    expect(chain.broadcasts).toHaveLength(1);
    const list = await operations.run('listTransactionsByReference', { query: { reference_id: 'r' } });
    expect(list.body).toMatchObject({ transactions: [{ status: 'failed' }] });
    expect((await eventsOf()).map(({ type }) => type)).toEqual(['transaction.failed']);
    expect(await nextNonce()).toBe(0);
  });

  test('nonces of transactions that wait for one that was replaced are free', async () => {
    chain.duringBroadcast = () => Promise.reject(new Error('socket hang up'));
    const send = (value: number) => sent({ to: receiver, value });
    const [first, second, third] = [await send(1), await send(2), await send(3)];
    const rows = kyselyOf(operations.database);
    const waits = (id: string, earlier: string) =>
      rows.updateTable('transactions').set({ after_transaction_id: earlier }).where('id', '=', id).execute();
    await waits(second.transaction_id!, first.transaction_id!);
    await waits(third.transaction_id!, second.transaction_id!);
    chain.duringBroadcast = async () => undefined;
    chain.broadcasts.length = 0;
    // While the first one may come, the others do.
    expect(await signedNonce(4)).toBe(3);
    await rows
      .updateTable('transactions')
      .set({ status: 'replaced' })
      .where('id', '=', first.transaction_id!)
      .execute();
    // The last one was not sent either.
    expect([await signedNonce(5), await signedNonce(6), await signedNonce(7)]).toEqual([1, 2, 3]);
    expect(chain.broadcasts.map(({ nonce }) => nonce)).toEqual([1, 2, 3]);
  });

  /** Two of one action, of which the chain has got none, and one that is sent after them. */
  async function sendBehindTwo() {
    chain.duringBroadcast = () => Promise.reject(new Error('socket hang up'));
    const [first, second] = [await sent(), await sent({ ...payment, value: 2 })];
    await kyselyOf(operations.database)
      .updateTable('transactions')
      .set({ after_transaction_id: first.transaction_id! })
      .where('id', '=', second.transaction_id!)
      .execute();
    chain.duringBroadcast = async () => undefined;
    chain.broadcasts.length = 0;
    const third = await sent({ ...payment, value: 3 });
    expect(third.transaction_request).toMatchObject({ nonce: 2 });
    return [first, second, third] as const;
  }

  async function followFor(minutes: number): Promise<void> {
    for (let left = minutes; left > 0; left -= 1) {
      operations.clock.nowMs += 60 * second;
      await follow();
    }
  }

  test('nothing is sent before a lower nonce that may never be sent, and all are sent in order', async () => {
    const all = await sendBehindTwo();
    expect(chain.broadcasts).toEqual([]);
    await followFor(5);
    expect(chain.broadcasts.map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
    for (const { transaction_id: id } of all)
      expect(await statusOf(id!)).toMatchObject({ status: 'broadcasted' });
  });

  test('what waits for a lower nonce ends with it, without having been sent', async () => {
    const [first, second, third] = await sendBehindTwo();
    chain.setStatus(first.hash, { kind: 'replaced', byHash: '0xab' });
    await followFor(5);
    expect(chain.broadcasts).toEqual([]);
    expect(await statusOf(second.transaction_id!)).toMatchObject({ status: 'failed' });
    expect(await statusOf(third.transaction_id!)).toMatchObject({ status: 'failed' });
    expect(await nextNonce()).toBe(1);
  });

  test('a transaction that nothing has sent for 15 s and that the chain then refuses leaves no gap below others', async () => {
    chain.duringBroadcast = () => Promise.reject(new Error('socket hang up'));
    const { transaction_id: id } = await sent();
    chain.duringBroadcast = async () => undefined;
    chain.broadcasts.length = 0;
    operations.clock.nowMs += 15 * second;
    const { transaction_id: laterId } = await sent({ ...payment, value: 2 });
    expect(chain.broadcasts).toEqual([]);
    chain.refusals.push({ isAccepted: false, reason: 'insufficient_funds', message: 'said the node' });
    await followFor(5);
    expect(chain.broadcasts.map(({ nonce }) => nonce)).toEqual([0]);
    expect(await statusOf(id!)).toMatchObject({ status: 'failed' });
    expect(await statusOf(laterId!)).toMatchObject({ status: 'failed' });
    expect(await nextNonce()).toBe(0);
  });

  test('a nonce reported as used is not a failure if the chain has the transaction', async () => {
    chain.refusals.push({ isAccepted: false, reason: 'stale', message: 'nonce too low' });
    chain.statusOf = async () => ({ kind: 'pending' });
    const { transaction_id: id } = await sent();
    expect(await statusOf(id!)).toMatchObject({ status: 'broadcasted' });
  });

  test('a failing simulation is reported before the policy and uses no nonce', async () => {
    chain.simulation = { succeeds: false, reason: 'reverts', message: 'ERC20: too little' };
    expect((await send()).body).toEqual({
      error: 'the transaction would revert: ERC20: too little',
      code: 'transaction_execution_failure',
    });
    chain.simulation = { succeeds: true, units: 21_000n };
    chain.balance = 10n ** 16n;
    expect((await send()).body).toMatchObject({ code: 'insufficient_funds' });
    chain.balance = 10n ** 20n;
    expect(await nextNonce()).toBe(0);
  });

  test('the life of a transaction: events, funds, a reorganization, and the end', async () => {
    const { hash, transaction_id: id } = await sent({
      to: token,
      data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [receiver, 5n] }),
    });
    const payload = {
      wallet_id: wallet.id,
      transaction_id: id,
      caip2,
      transaction_hash: hash,
      reference_id: null,
    };
    const later = async (): Promise<string | undefined> => {
      operations.clock.nowMs += 60 * second;
      await follow();
      const body = await statusOf(id!);
      return 'status' in body ? body.status : undefined;
    };
    chain.include(hash);
    expect(await later()).toBe('confirmed');
    expect(await eventsOf()).toEqual([
      { type: 'transaction.broadcasted', ...payload },
      { type: 'transaction.confirmed', ...payload },
      {
        type: 'wallet.funds_withdrawn',
        wallet_id: wallet.id,
        idempotency_key: `withdrawn:${id}`,
        caip2,
        asset: { type: 'erc20', address: token },
        amount: '5',
        transaction_hash: hash,
        sender: wallet.address,
        recipient: receiver,
        block: { number: 7, timestamp: 1_767_225_600 },
        transaction_fee: '42000',
      },
    ]);
    // The block is dropped: the bytes are broadcast again, and only the inclusion is reported twice.
    chain.setStatus(hash, undefined);
    expect(await later()).toBe('broadcasted');
    expect(chain.broadcasts.map((seen) => seen.hash)).toEqual([hash, hash]);
    chain.include(hash);
    expect(await later()).toBe('confirmed');
    chain.include(hash, { isFinal: true });
    expect(await later()).toBe('finalized');
    expect((await eventsOf()).slice(3).map(({ type }) => type)).toEqual([
      'transaction.broadcasted',
      'transaction.confirmed',
    ]);
    // Nothing is asked any more.
    chain.statusOf = () => Promise.reject(new Error('not asked'));
    expect(await later()).toBe('finalized');
  });

  test('funds that reach a wallet of this server are recorded', async () => {
    const other = await createWallet(operations);
    const { hash } = await sent({ to: other.address, value: 9 });
    chain.include(hash, { isFinal: true });
    operations.clock.nowMs += 60 * second;
    await follow();
    const reported = await eventsOf();
    expect(reported.map(({ type }) => type)).toEqual([
      'transaction.broadcasted',
      'transaction.confirmed',
      'wallet.funds_withdrawn',
      'wallet.funds_deposited',
    ]);
    expect(reported[3]).toMatchObject({
      wallet_id: other.id,
      asset: { type: 'native-token', address: null },
      amount: '9',
      sender: wallet.address,
      recipient: other.address,
    });
  });

  test.each([
    [
      {
        kind: 'reverted',
        isFinal: true,
        reason: 'out of gas',
        blockNumber: 1n,
        blockTimestampSeconds: 1,
        feePaid: 1n,
      },
      'execution_reverted',
    ],
    [{ kind: 'replaced', byHash: '0xab' }, 'replaced'],
    [{ kind: 'unknown', isExpired: true }, 'failed'],
  ] as const)("the chain's final status settles it: %#", async (status, end) => {
    const { hash, transaction_id: id } = await sent();
    chain.setStatus(hash, status);
    operations.clock.nowMs += 60 * second;
    await follow();
    expect(await statusOf(id!)).toMatchObject({ status: end });
    expect((await eventsOf()).map(({ type }) => type)).toEqual([
      'transaction.broadcasted',
      `transaction.${end}`,
    ]);
  });

  test('a clock that was an hour ahead and is set back strands nothing', async () => {
    const { hash, transaction_id: id } = await sent();
    operations.clock.nowMs += 3600 * second;
    await follow();
    chain.include(hash);
    operations.clock.nowMs -= 3600 * second - 15 * second;
    await follow();
    expect(await statusOf(id!)).toMatchObject({ status: 'broadcasted' });
    const { services, database } = operations;
    await pullBack({ services, inUnit: inUnitOf(unitsOf(database)) }).run(() => undefined);
    await follow();
    expect(await statusOf(id!)).toMatchObject({ status: 'confirmed' });
  });

  test('a chain that hangs is reported once a minute, with the number of failures and no stack', async () => {
    const lines: object[] = [];
    const warn = (fields: object) => void lines.push(fields);
    await sent();
    Object.assign(operations.services, { log: { ...operations.services.log, warn } });
    chain.statusOf = () => Promise.reject(new ChainUnavailableError('node.test: no response'));
    const { services, database } = operations;
    const job = followTransactions({ services, inUnit: inUnitOf(unitsOf(database)) });
    for (let time = 0; time < 20; time += 1) {
      operations.clock.nowMs += 60 * second;
      await job.run(() => undefined);
    }
    expect(lines).toEqual([{ subject: caip2, times: 1, reason: 'node.test: no response' }]);
  });

  test('one that waits for long is reported once, with the signed request', async () => {
    const { transaction_id: id, transaction_request: request } = await sent();
    for (let minutes = 0; minutes < 12; minutes += 1) {
      operations.clock.nowMs += 60 * second;
      await follow();
    }
    const reported = (await eventsOf()).filter(({ type }) => type === 'transaction.still_pending');
    expect(reported).toEqual([expect.objectContaining({ transaction_id: id, transaction_request: request })]);
  });

  test('one that the chain dropped and refuses is retried for a day, then given up', async () => {
    const { hash, transaction_id: id } = await sent();
    const refuseOnce = () => {
      chain.setStatus(hash, undefined);
      chain.refusals.push({ isAccepted: false, reason: 'underpriced', message: 'fee too low' });
    };
    refuseOnce();
    operations.clock.nowMs += 3600 * second;
    await follow();
    expect(await statusOf(id!)).toMatchObject({ status: 'broadcasted' });
    refuseOnce();
    operations.clock.nowMs += 24 * 3600 * second;
    await follow();
    expect(await statusOf(id!)).toMatchObject({ status: 'failed' });
  });

  test('the policy evaluates the completed bytes', async () => {
    const policed = await createWallet(operations, {
      policy_ids: [
        await createPolicy(operations, [
          { field_source: 'ethereum_transaction', field: 'chain_id', operator: 'eq', value: '31337' },
          { field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '10' },
        ]),
      ],
    });
    // No chain id is given: it is in the bytes.
    expect((await rpc(operations, policed.id, { to: receiver, value: 10 })).status).toBe(200);
    expect((await rpc(operations, policed.id, { to: receiver, value: 11 })).body).toMatchObject({
      code: 'policy_violation',
    });
    chain.simulation = { succeeds: false, reason: 'reverts', message: 'no' };
    expect((await rpc(operations, policed.id, { to: receiver, value: 11 })).body).toMatchObject({
      code: 'transaction_execution_failure',
    });
    expect(chain.broadcasts).toHaveLength(1);
  });

  test('an identical transaction is not recorded twice', async () => {
    const { transaction_id: id } = await sent({ ...payment, nonce: 3 });
    expect((await send({ ...payment, nonce: 3 })).body).toEqual({
      error: `the same transaction was already sent as \`${id}\`; a chain accepts it only once`,
      code: 'transaction_broadcast_failure',
    });
    // A second transaction with the same nonce speeds up or cancels the first.
    expect((await send({ ...payment, nonce: 3, value: 0 })).status).toBe(200);
  });
});

test('two processes on one PostgreSQL use different nonces, and one of them broadcasts what is due', async () => {
  const chain = scriptChain();
  await using here = await openOperations('postgres', { chains: chain });
  await using there = await here.anotherProcess();
  const wallet = await createWallet(here);
  const both = Array.from({ length: 12 }, (_, index) =>
    rpc(index % 2 === 0 ? here : there, wallet.id, { to: receiver, value: index }),
  );
  expect((await Promise.all(both)).map(({ status }) => status)).toEqual(Array(12).fill(200));
  expect(chain.broadcasts.map(({ nonce }) => nonce).sort((a, b) => a - b)).toEqual([...Array(12).keys()]);

  chain.duringBroadcast = () => Promise.reject(new Error('socket hang up'));
  const hashes = await Promise.all(
    Array.from(
      { length: 6 },
      async (_, value) => dataOf(await rpc(there, wallet.id, { to: receiver, value })).hash,
    ),
  );
  chain.duringBroadcast = async () => undefined;
  chain.broadcasts.length = 0;
  here.clock.nowMs += 15 * second;
  await Promise.all([runJob(here), runJob(there), runJob(here), runJob(there)]);
  expect(chain.broadcasts.map(({ hash }) => hash).sort()).toEqual([...hashes].sort());
});

async function createWallet(operations: TestOperations, extra: object = {}): Promise<Wallet> {
  const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum', ...extra } });
  return body as Wallet;
}

async function createPolicy(operations: TestOperations, conditions: readonly object[]): Promise<string> {
  const { body } = await operations.run('createPolicy', {
    body: {
      version: '1.0',
      name: 'Small payments',
      chain_type: 'ethereum',
      rules: [{ name: 'Small', method: 'eth_sendTransaction', action: 'ALLOW', conditions }],
    },
  });
  return (body as { id: string }).id;
}

function rpc(
  operations: TestOperations,
  walletId: string,
  transaction: object,
  extra: object = {},
  options: object = {},
) {
  return operations.run('walletRpc', {
    path: { wallet_id: walletId },
    body: { method: 'eth_sendTransaction', caip2, params: { transaction }, ...extra },
    ...options,
  });
}

function dataOf({ status, body }: { status: number; body: unknown }) {
  expect({ status, body }).toMatchObject({ status: 200 });
  return (body as { data: EthereumSendTransactionRpcResponseData & { hash: Hex } }).data;
}

function runJob({ services, database }: TestOperations): Promise<boolean> {
  return followTransactions({ services, inUnit: inUnitOf(unitsOf(database)) }).run(() => undefined);
}

async function readEvents({ database }: TestOperations): Promise<Record<string, unknown>[]> {
  const rows = await kyselyOf(database)
    .selectFrom('outbox_events')
    .select('payload')
    .orderBy('sequence')
    .execute();
  return rows
    .map(({ payload }) => JSON.parse(payload))
    .filter(({ type }) => /^(transaction|wallet\.funds)/.test(type));
}

async function rowCount({ database }: TestOperations): Promise<number> {
  return (await kyselyOf(database).selectFrom('transactions').select('id').execute()).length;
}

function kyselyOf(database: TestOperations['database']) {
  return (database.orm.em.fork() as SqlEntityManager).getKysely<Tables>();
}
