import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { expect, test } from 'vitest';
import type { TransactionRow } from '../../src/domain/money/transactions/transaction.entity.ts';
import type { Tables } from '../../src/domain/tables.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import { followTransactions } from '../../src/jobs/follow-transactions.ts';
import type { AnyChain, Chains } from '../../src/ports/chains.ts';
import { openSimulatedChains } from '../../src/sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { openOperations } from '../support/run-operations.ts';

// Wallets send to each other and to strangers on two chains, sponsored or not, while the server is killed at times
// between signing and broadcasting, or right after it. In the end each wallet holds exactly what our records of its
// transactions imply, and no chain has lost or created anything.

const caip2s = ['eip155:8453', 'eip155:1'] as const;
const token = `0x${'cc'.repeat(20)}`;
/** Sentinels: reverted in the block, never included, lost by nodes and bundlers. */
const strangers = ['beef0000', 'dead0003', 'dead0002'].map((end) => `0x${'ab'.repeat(16)}${end}`);

const who = fc.nat({ max: 2 });
const chain = fc.nat({ max: 1 });
const amount = fc.oneof(fc.bigInt(0n, 1_000n), fc.bigInt(0n, 10n ** 18n), fc.constant(3n * 10n ** 18n));
const actions = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('fund' as const), who, chain, amount, isToken: fc.boolean() }),
    fc.record({
      kind: fc.constant('send' as const),
      who,
      chain,
      to: fc.nat({ max: 5 }),
      amount,
      isToken: fc.boolean(),
      isSponsored: fc.boolean(),
      crash: fc.constantFrom('none', 'none', 'before', 'behind'),
    }),
    fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
  ),
  { maxLength: 30 },
);

type Action = (typeof actions extends fc.Arbitrary<infer T> ? T : never)[number];

async function openWorld() {
  let crash = 'none';
  const clock = { nowMs: 0 };
  const simulated = openSimulatedChains({
    file: ':memory:',
    clock: { now: () => clock.nowMs },
    confirmAfterMs: undefined,
  });
  /** The server crashes and does not know what it has done. */
  const dying =
    (broadcast: AnyChain['broadcast']): AnyChain['broadcast'] =>
    async (bytes) => {
      const moment = crash;
      crash = 'none';
      if (moment === 'before') throw new Error('killed');
      const outcome = await broadcast(bytes);
      if (moment === 'behind') throw new Error('killed');
      return outcome;
    };
  const chains: Chains = {
    find(caip2) {
      const found = simulated.find(caip2);
      if (found?.kind !== 'evm') return found;
      const { bundler } = found;
      return {
        ...found,
        broadcast: dying(found.broadcast),
        ...(bundler === undefined ? {} : { bundler: { ...bundler, broadcast: dying(bundler.broadcast) } }),
      };
    },
  };
  const operations = await openOperations('sqlite', { chains });
  clock.nowMs = operations.clock.nowMs;
  const wallets: Wallet[] = [];
  for (let index = 0; index < 3; index += 1) {
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    wallets.push(body as Wallet);
  }
  const job = followTransactions({
    services: operations.services,
    inUnit: inUnitOf(unitsOf(operations.database)),
  });
  // The token exists on every chain: a call of an address without a contract would succeed and move nothing.
  for (const caip2 of caip2s) {
    await simulated.fund(caip2, { address: wallets[0]!.address, tokenAddress: token, rawAmount: 0n });
  }
  const given = new Map<string, bigint>();
  const keyOf = (caip2: string, address: string, asset: string | null) =>
    `${caip2} ${address.toLowerCase()} ${asset ?? 'native'}`;

  async function wait(seconds: number): Promise<void> {
    operations.clock.nowMs += seconds * 1000;
    clock.nowMs = operations.clock.nowMs;
    while (await job.run(() => undefined));
  }

  async function run(action: Action): Promise<string> {
    if (action.kind === 'wait') {
      await wait(action.seconds);
      return 'waited';
    }
    const caip2 = caip2s[action.chain]!;
    const wallet = wallets[action.who]!;
    const tokenAddress = action.isToken ? token : null;
    if (action.kind === 'fund') {
      await simulated.fund(caip2, { address: wallet.address, tokenAddress, rawAmount: action.amount });
      const key = keyOf(caip2, wallet.address, tokenAddress);
      given.set(key, (given.get(key) ?? 0n) + action.amount);
      return 'funded';
    }
    const to = [...wallets.map(({ address }) => address), ...strangers][action.to]!;
    crash = action.crash;
    const { status, body } = await operations.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_sendTransaction',
        caip2,
        sponsor: action.isSponsored,
        params: { transaction: action.isToken ? transfer(to, action.amount) : pay(to, action.amount) },
      },
    });
    crash = 'none';
    return status === 200 ? `sent ${action.crash}` : `refused ${(body as { code?: string }).code}`;
  }

  return { operations, simulated, wallets, given, keyOf, wait, run };
}

const pay = (to: string, value: bigint) => ({ to, value: `0x${value.toString(16)}` });
const transfer = (to: string, value: bigint) => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, value] }),
});

type World = Awaited<ReturnType<typeof openWorld>>;

/** The balance of every account according to our records. */
function account({ given, keyOf }: World, rows: readonly TransactionRow[]): Map<string, bigint> {
  const held = new Map(given);
  const move = (caip2: string, address: string, asset: string | null, by: bigint) => {
    const key = keyOf(caip2, address, asset);
    held.set(key, (held.get(key) ?? 0n) + by);
  };
  for (const row of rows) {
    if (row.is_sponsored === 0) move(row.caip2, row.sender, null, -BigInt(row.fee_paid ?? '0'));
    if (row.status !== 'finalized') continue;
    const asset = row.moved_token === 'native' ? null : row.moved_token;
    move(row.caip2, row.sender, asset, -BigInt(row.moved_amount!));
    move(row.caip2, row.moved_to!, asset, BigInt(row.moved_amount!));
  }
  return held;
}

test('balances of wallets match the records of their transactions, whenever the server crashes', async () => {
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(actions, async (list) => {
      const world = await openWorld();
      const { operations, simulated, wallets, keyOf } = world;
      try {
        for (const [who] of wallets.entries()) {
          for (const chain of [0, 1])
            await world.run({ kind: 'fund', who, chain, amount: 10n ** 18n, isToken: false });
        }
        for (const action of list) note(await world.run(action));
        for (let round = 0; round < 8; round += 1) await world.wait(600);
        const em = operations.database.orm.em.fork() as SqlEntityManager;
        const rows = (await em
          .getKysely<Tables>()
          .selectFrom('transactions')
          .selectAll()
          .execute()) as unknown as TransactionRow[];
        for (const row of rows) note(`${row.is_sponsored === 1 ? 'sponsored ' : ''}${row.status}`);
        const held = account(world, rows);
        for (const caip2 of caip2s) {
          const addresses = [...wallets.map(({ address }) => address), ...strangers];
          for (const address of addresses) {
            const balances = await simulated.find(caip2)!.balances(address, [null, token]);
            const expected = [null, token].map((asset) => held.get(keyOf(caip2, address, asset)) ?? 0n);
            expect(`${caip2} ${address} ${balances}`).toBe(`${caip2} ${address} ${expected}`);
          }
          const tokens = [...world.given].filter(([key]) => key.startsWith(caip2) && key.endsWith(token));
          expect(await simulated.total(caip2, token)).toBe(tokens.reduce((sum, [, each]) => sum + each, 0n));
        }
      } finally {
        await operations[Symbol.asyncDispose]();
        await simulated.close();
      }
    }),
    process.env.TEST_LONG === undefined ? { numRuns: 40, seed: 3 } : { numRuns: 600 },
  );
  // The walks have been everywhere.
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining([
      'sent none',
      'sent before',
      'sent behind',
      'refused insufficient_funds',
      'refused transaction_execution_failure',
      'finalized',
      'sponsored finalized',
      'execution_reverted',
      'sponsored execution_reverted',
      'replaced',
    ]),
  );
}, 300_000);
