import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  isTerminal,
  type TransactionStatus,
  wayTo,
} from '../../src/domain/money/transactions/transaction.entity.ts';
import type { Tables } from '../../src/domain/tables.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import { followTransactions } from '../../src/jobs/follow-transactions.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { openOperations } from '../support/run-operations.ts';
import { caip2, scriptChain } from '../support/scripted-chain.ts';

// The life cycle of a transaction according to the contract, implemented a second time.
const openStates = ['pending', 'broadcasted', 'confirmed', 'execution_reverted'] as const;
const closedStates = ['finalized', 'failed', 'replaced', 'provider_error'] as const;
const everyState: readonly TransactionStatus[] = [...openStates, ...closedStates];
const anyState = fc.constantFrom(...everyState);

test('final states have no successors, no state leads back to the first one, and every final state is reachable from every open one', () => {
  fc.assert(
    fc.property(anyState, anyState, (from, to) => {
      const way = wayTo(from, to);
      const isEnd = (closedStates as readonly string[]).includes(from);
      expect(isTerminal(from)).toBe(isEnd);
      if (from === to) expect(way).toEqual([]);
      else if (isEnd || to === 'pending') expect(way).toBeUndefined();
      else expect(way?.at(-1)).toBe(to);
      // Every state on the way is reported: a block never before the broadcast, a final state never before the block.
      const passed = [from, ...(way ?? [])];
      for (const state of ['confirmed', 'execution_reverted'] as const) {
        if (passed.slice(1).includes(state))
          expect(passed.slice(0, passed.indexOf(state))).not.toEqual(['pending']);
      }
      if (way?.includes('finalized')) expect(passed.at(-2)).toBe('confirmed');
      expect(new Set(passed).size).toBe(passed.length);
    }),
  );
});

const order = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('send' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refuse' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('include', 'drop'), at: fc.nat(7) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('down', 'up') }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
  },
);
type Order = typeof order extends fc.Arbitrary<infer T> ? T : never;

test('whatever chain and network do: one transaction per send, one nonce each, constant bytes, and consistent events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(order, { maxLength: 25 }), async (orders) => {
      const world = await openWorld();
      try {
        for (const next of orders) await world.obey(next);
        await world.settle();
        await world.judge();
      } finally {
        await world.close();
      }
    }),
    { numRuns: process.env.TEST_LONG === undefined ? 25 : 500 },
  );
}, 600_000);

async function openWorld() {
  const chain = scriptChain();
  const operations = await openOperations('sqlite', { chains: chain });
  const created = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
  const wallet = created.body as Wallet;
  const job = followTransactions({
    services: operations.services,
    inUnit: inUnitOf(unitsOf(operations.database)),
  });
  const kysely = () => (operations.database.orm.em.fork() as SqlEntityManager).getKysely<Tables>();
  const acknowledged: string[] = [];
  // Hashes that reached the chain without a refusal.
  const taken = () => [...new Set(chain.broadcasts.map(({ hash }) => hash))];

  let amount = 0;
  const send = async (): Promise<void> => {
    amount += 1;
    const { status, body } = await operations.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_sendTransaction',
        caip2,
        params: { transaction: { to: wallet.address, value: amount } },
      },
    });
    if (status === 200) acknowledged.push((body as { data: { hash: string } }).data.hash);
  };

  return {
    close: () => operations[Symbol.asyncDispose](),
    async obey(next: Order): Promise<void> {
      if (next.kind === 'send') await send();
      if (next.kind === 'refuse' && !chain.isDown) {
        chain.refusals.push({ isAccepted: false, reason: 'invalid', message: 'no' });
        await send();
      }
      if (next.kind === 'include' || next.kind === 'drop') {
        const hash = acknowledged.at('at' in next ? next.at : 0);
        if (hash === undefined || !taken().some((known) => known === hash)) return;
        if (next.kind === 'include') chain.include(hash);
        else chain.setStatus(hash, undefined);
      }
      if (next.kind === 'down' || next.kind === 'up') chain.isDown = next.kind === 'down';
      if (next.kind === 'wait') {
        operations.clock.nowMs += ('seconds' in next ? next.seconds : 0) * 1000;
        await job.run(() => undefined);
      }
    },
    /** The network works, and every transaction is finally included. */
    async settle(): Promise<void> {
      chain.isDown = false;
      for (let round = 0; round < 3; round += 1) {
        operations.clock.nowMs += 120_000;
        while (await job.run(() => undefined));
        for (const hash of acknowledged) chain.include(hash, { isFinal: true });
      }
    },
    async judge(): Promise<void> {
      const rows = await kysely().selectFrom('transactions').selectAll().execute();
      const finalized = rows.filter(({ status }) => status === 'finalized');
      expect(finalized.map((row) => row.transaction_hash).sort()).toEqual([...acknowledged].sort());
      expect(
        rows.filter(({ status }) => status !== 'finalized').every(({ status }) => status === 'failed'),
      ).toBe(true);
      // Acknowledged sends use the nonces from 0 without gaps; refused ones use none.
      const nonces = finalized.map(({ nonce }) => nonce).sort((a, b) => Number(a) - Number(b));
      expect(nonces).toEqual([...nonces.keys()]);
      expect(new Set(taken()).size).toBe(rows.length);
      const events = await kysely()
        .selectFrom('outbox_events')
        .select(['type', 'resource_id'])
        .where('type', 'like', 'transaction.%')
        .orderBy('sequence')
        .execute();
      for (const { id, status } of rows) {
        const reported = events
          .filter(({ resource_id: about }) => about === id)
          .map(({ type }) => type.slice(12));
        const story = [
          'pending',
          ...reported.filter((state) => state !== 'still_pending'),
          status,
        ] as TransactionStatus[];
        for (const [index, state] of story.slice(1).entries()) {
          // Each state is one step apart except the last: `finalized` has no event.
          expect(wayTo(story[index]!, state)?.length).toBeLessThanOrEqual(1);
        }
      }
    },
  };
}
