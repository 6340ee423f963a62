import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { toHex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectChains } from '../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../src/adapters/log.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { BATCH_EXECUTOR_ADDRESS } from '../../src/engine/signing/ethereum/batch-executor.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import { followTransactions } from '../../src/jobs/follow-transactions.ts';
import { openSimulatedChains } from '../../src/sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { startAnvil } from '../support/anvil.ts';
import { databaseKinds } from '../support/databases.ts';
import { executorCode } from '../support/evm-assembly.ts';
import { openOperations, type TestOperations } from '../support/run-operations.ts';

// One wallet sends in every possible way, in any order, before and after blocks. Each send pays one wei to a
// different address. Every send that returned 200 is included: no request uses the nonce of another one.

const caip2 = 'eip155:8453';
const ether = 10n ** 18n;

/** The ways to send; each pays one wei to `to`. */
const ways = {
  plain: (world: World, wallet: Wallet, to: string) =>
    rpc(world, wallet, { method: 'eth_sendTransaction', params: { transaction: { to, value: 1 } } }),
  transfer: (world: World, wallet: Wallet, to: string) =>
    world.operations.run('transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'eth', chain: 'base', amount: '0.000000000000000001' },
        destination: { address: to },
      },
    }),
  calls: (world: World, wallet: Wallet, to: string) =>
    rpc(world, wallet, { method: 'wallet_sendCalls', params: { calls: [{ to, value: 1 }] } }),
  sponsored: (world: World, wallet: Wallet, to: string) =>
    rpc(world, wallet, {
      method: 'eth_sendTransaction',
      sponsor: true,
      params: { transaction: { to, value: 1 } },
    }),
  'sponsored calls': (world: World, wallet: Wallet, to: string) =>
    rpc(world, wallet, { method: 'wallet_sendCalls', sponsor: true, params: { calls: [{ to, value: 1 }] } }),
  /** The wallet delegates itself in a transaction of its own. */
  async delegating(world: World, wallet: Wallet, to: string) {
    const { body } = await world.operations.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_sign7702Authorization',
        params: { contract: BATCH_EXECUTOR_ADDRESS, chain_id: 8453, executor: 'self' },
      },
    });
    const { authorization } = (body as { data: { authorization: object } }).data;
    const transaction = { type: 4, to, value: 1, authorization_list: [authorization] };
    return rpc(world, wallet, { method: 'eth_sendTransaction', params: { transaction } });
  },
} as const;
type Way = keyof typeof ways;

function rpc({ operations }: World, wallet: Wallet, request: object) {
  return operations.run('walletRpc', { path: { wallet_id: wallet.id }, body: { caip2, ...request } });
}

/** A chain with controls for tests. */
interface World extends AsyncDisposable {
  readonly operations: TestOperations;
  fund(address: string): Promise<unknown>;
  /** Mines one block and updates our records. */
  block(): Promise<void>;
  balanceOf(address: string): Promise<bigint>;
}

async function openSimulated(kind: (typeof databaseKinds)[number]): Promise<World> {
  const clock = { nowMs: 0 };
  const chains = openSimulatedChains({
    file: ':memory:',
    clock: { now: () => clock.nowMs },
    confirmAfterMs: undefined,
  });
  const operations = await openOperations(kind, { chains });
  clock.nowMs = operations.clock.nowMs;
  const follow = following(operations);
  return {
    operations,
    fund: (address) => chains.fund(caip2, { address, tokenAddress: null, rawAmount: ether }),
    async block() {
      operations.clock.nowMs += 60_000;
      clock.nowMs = operations.clock.nowMs;
      await follow();
    },
    balanceOf: async (address) => (await chains.find(caip2)!.balances(address, [null]))[0]!,
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await chains.close();
    },
  };
}

async function openAnvil(): Promise<World> {
  const anvil = await startAnvil(8453);
  await anvil.ask('anvil_setCode', BATCH_EXECUTOR_ADDRESS, executorCode);
  const operations = await openOperations('sqlite', {
    chains: connectChains([{ caip2, urls: [anvil.url] }], silentLog),
  });
  const follow = following(operations);
  return {
    operations,
    fund: (address) => anvil.ask('anvil_setBalance', address, toHex(ether)),
    async block() {
      await anvil.ask('evm_mine');
      // anvil ignores the nonces of authorizations when it selects the next transaction, so waiting ones are sent
      // again.
      await anvil.ask('anvil_dropAllTransactions');
      operations.clock.nowMs += 60_000;
      await follow();
    },
    balanceOf: async (address) => BigInt((await anvil.ask('eth_getBalance', address, 'latest')) as string),
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await anvil[Symbol.asyncDispose]();
    },
  };
}

function following({ services, database }: TestOperations): () => Promise<void> {
  const job = followTransactions({ services, inUnit: inUnitOf(unitsOf(database)) });
  return async () => {
    while (await job.run(() => undefined));
  };
}

let receivers = 100;

const receiverOf = (index: number): string => `0x${'5e'.repeat(16)}${String(index).padStart(8, '0')}`;

async function fundedWallet(world: World): Promise<Wallet> {
  const created = await world.operations.run('createWallet', { body: { chain_type: 'ethereum' } });
  const wallet = created.body as Wallet;
  await world.fund(wallet.address);
  return wallet;
}

async function checkOrder(
  world: World,
  steps: readonly (Way | 'block')[],
  atOnce: boolean,
  given?: Wallet,
): Promise<void> {
  const wallet = given ?? (await fundedWallet(world));
  const earlier = await transactionsOf(world, wallet);
  const paid: string[] = [];
  const send = async (way: Way): Promise<void> => {
    receivers += 1;
    const to = receiverOf(receivers);
    const { status, body } = await ways[way](world, wallet, to);
    expect(`${way} ${status === 200 ? 200 : JSON.stringify(body)}`).toBe(`${way} 200`);
    paid.push(to);
  };
  let together: Promise<void>[] = [];
  for (const step of steps) {
    if (step !== 'block' && atOnce) together.push(send(step));
    else if (step !== 'block') await send(step);
    else {
      await Promise.all(together);
      together = [];
      await world.block();
    }
  }
  await Promise.all(together);
  const statuses = async (): Promise<string[]> => {
    const rows = await transactionsOf(world, wallet);
    return rows.filter(({ id }) => !earlier.some((each) => each.id === id)).map(({ status }) => status);
  };
  for (let round = 0; round < steps.length + 2; round += 1) {
    await world.block();
    if ((await statuses()).every((status) => status === 'confirmed' || status === 'finalized')) break;
  }
  const ended = (await statuses()).map((status) => (status === 'finalized' ? 'confirmed' : status));
  expect(ended).toEqual(paid.map(() => 'confirmed'));
  expect(await Promise.all(paid.map((to) => world.balanceOf(to)))).toEqual(paid.map(() => 1n));
}

function transactionsOf({ operations }: World, wallet: Wallet) {
  const em = operations.database.orm.em.fork() as SqlEntityManager;
  const table = em.getKysely<Tables>().selectFrom('transactions');
  return table.select(['id', 'status']).where('wallet_id', '=', wallet.id).execute();
}

const orders = (known: readonly Way[]) =>
  fc.array(fc.constantFrom(...known, 'block' as const), { minLength: 2, maxLength: 8 });
const everyWay = Object.keys(ways) as Way[];
const long = process.env.TEST_LONG !== undefined;

describe.each(databaseKinds)('on simulated chains and %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await openSimulated(kind);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each<[Way, Way]>([
    ['sponsored', 'plain'],
    ['calls', 'plain'],
    ['sponsored', 'transfer'],
    ['calls', 'transfer'],
    ['delegating', 'plain'],
  ])('%s, then %s before the next block: both are included', async (first, second) => {
    await checkOrder(world, [first, second], false);
  });

  test('a specified nonce that a pending authorization uses is refused; the transaction itself can be replaced', async () => {
    const wallet = await fundedWallet(world);
    await ways.calls(world, wallet, receiverOf(1));
    const withNonce = (nonce: number) => {
      const transaction = {
        to: receiverOf(2),
        value: 1,
        nonce,
        max_fee_per_gas: toHex(10n ** 11n),
        max_priority_fee_per_gas: toHex(10n ** 10n),
      };
      return rpc(world, wallet, { method: 'eth_sendTransaction', params: { transaction } });
    };
    expect(await withNonce(1)).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_data',
        error: expect.stringContaining('a pending transaction uses the nonce `1` for an authorization'),
      },
    });
    expect(await withNonce(0)).toMatchObject({ status: 200 });
    await world.block();
    await world.block();
    // The replaced transaction no longer holds its authorization's nonce.
    await checkOrder(world, ['plain'], false, wallet);
  });

  test('an authorization that uses the nonce of a pending transaction of another wallet is refused', async () => {
    const [sender, authority] = [await fundedWallet(world), await fundedWallet(world)];
    const { body } = await world.operations.run('walletRpc', {
      path: { wallet_id: authority.id },
      body: {
        method: 'eth_sign7702Authorization',
        params: { contract: BATCH_EXECUTOR_ADDRESS, chain_id: 8453, nonce: 0 },
      },
    });
    const { authorization } = (body as { data: { authorization: object } }).data;
    const send = () =>
      rpc(world, sender, {
        method: 'eth_sendTransaction',
        params: {
          transaction: { type: 4, to: receiverOf(3), value: 1, authorization_list: [authorization] },
        },
      });
    expect(await send()).toMatchObject({ status: 200 });
    // It holds the nonce: what the authority sends next is included behind it.
    await checkOrder(world, ['plain', 'calls'], false, authority);

    const third = await fundedWallet(world);
    const answer = await world.operations.run('walletRpc', {
      path: { wallet_id: third.id },
      body: {
        method: 'eth_sign7702Authorization',
        params: { contract: BATCH_EXECUTOR_ADDRESS, chain_id: 8453, nonce: 0 },
      },
    });
    const later = (answer.body as { data: { authorization: object } }).data.authorization;
    expect(await ways.plain(world, third, receiverOf(4))).toMatchObject({ status: 200 });
    const transaction = { type: 4, to: receiverOf(5), value: 1, authorization_list: [later] };
    expect(
      await rpc(world, sender, { method: 'eth_sendTransaction', params: { transaction } }),
    ).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_data',
        error: expect.stringContaining('/params/transaction/authorization_list'),
      },
    });
  });

  test('sends in any order are all included', async () => {
    await fc.assert(
      fc.asyncProperty(orders(everyWay), (steps) => checkOrder(world, steps, false)),
      { numRuns: long ? 400 : kind === 'sqlite' ? 8 : 4, ...(long ? {} : { seed: 7 }) },
    );
  }, 300_000);

  test.each<[string, Way[]]>([
    ['sponsored or not', ['plain', 'transfer', 'sponsored', 'sponsored calls']],
    ['with batches', ['plain', 'transfer', 'calls']],
    ['sponsored and with batches', ['calls', 'sponsored', 'sponsored calls']],
  ])(
    'sends at once, %s, are all included',
    async (_, known) => {
      await fc.assert(
        fc.asyncProperty(orders(known), (steps) => checkOrder(world, steps, true)),
        { numRuns: long ? 200 : 3, ...(long ? {} : { seed: 7 }) },
      );
    },
    300_000,
  );
});

test('on anvil, sends in any order are all included', async () => {
  await using world = await openAnvil();
  await checkOrder(world, ['calls', 'plain'], false);
  await fc.assert(
    fc.asyncProperty(orders(['plain', 'transfer', 'calls', 'delegating']), (steps) =>
      checkOrder(world, steps, false),
    ),
    { numRuns: long ? 100 : 3, ...(long ? {} : { seed: 7 }) },
  );
}, 300_000);
