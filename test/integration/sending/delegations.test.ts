import { describe, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { followTransactions } from '../../../src/jobs/follow-transactions.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations } from '../../support/run-operations.ts';

// Batches and sponsored operations need the account's own code, which each of them may set (EIP-7702). What a request
// has read of that code may be out of date when it signs.

const caip2 = 'eip155:8453';

/** A wallet on a simulated chain whose next request to plan can be held. */
async function openWorld(kind: (typeof databaseKinds)[number]) {
  const clock = { nowMs: 0 };
  const simulated = openSimulatedChains({
    file: ':memory:',
    clock: { now: () => clock.nowMs },
    confirmAfterMs: undefined,
  });
  let held: { readonly isPlanning: () => void; readonly goOn: Promise<void> } | undefined;
  const chain = simulated.find(caip2) as EvmChain;
  const holding: EvmChain = {
    ...chain,
    async fees() {
      const hold = held;
      held = undefined;
      hold?.isPlanning();
      await hold?.goOn;
      return chain.fees();
    },
  };
  const chains: Chains = { find: () => holding };
  const operations = await openOperations(kind, { chains });
  clock.nowMs = operations.clock.nowMs;
  const job = followTransactions({
    services: operations.services,
    inUnit: inUnitOf(unitsOf(operations.database)),
  });
  const wallet = (await operations.run('createWallet', { body: { chain_type: 'ethereum' } })).body as Wallet;
  await simulated.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
  let receivers = 100;
  return {
    /** Pays one wei in a batch or a sponsored operation; returns the receiver's address. */
    async pay(sponsor: boolean): Promise<string> {
      receivers += 1;
      const to = `0x${'5e'.repeat(16)}${String(receivers).padStart(8, '0')}`;
      const body = { caip2, method: 'wallet_sendCalls', sponsor, params: { calls: [{ to, value: 1 }] } };
      const answer = await operations.run('walletRpc', { path: { wallet_id: wallet.id }, body });
      expect(answer).toMatchObject({ status: 200 });
      return to;
    },
    /** Mines a block and records what it includes. */
    async block(): Promise<void> {
      operations.clock.nowMs += 5_000;
      clock.nowMs = operations.clock.nowMs;
      while (await job.run(() => undefined));
    },
    /** Holds the next request between what it reads of the account and its transaction. */
    hold() {
      const planning = Promise.withResolvers<void>();
      const going = Promise.withResolvers<void>();
      held = { isPlanning: planning.resolve, goOn: going.promise };
      return { planning: planning.promise, goOn: going.resolve };
    },
    balanceOf: async (address: string) => (await chain.balances(address, [null]))[0],
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await simulated.close();
    },
  };
}

describe.each(databaseKinds)('on %s', (kind) => {
  test.each([
    ['a batch', false],
    ['a sponsored operation', true],
  ])(
    '%s that was planned before the account was delegated elsewhere delegates it again',
    async (_, sponsor) => {
      await using world = await openWorld(kind);
      const first = await world.pay(sponsor);
      await world.block();
      const { planning, goOn } = world.hold();
      const planned = world.pay(sponsor);
      await planning;
      const between = await world.pay(!sponsor);
      await world.block();
      expect(await world.balanceOf(between)).toBe(1n);
      goOn();
      const last = await planned;
      await world.block();
      expect(await Promise.all([first, between, last].map(world.balanceOf))).toEqual([1n, 1n, 1n]);
    },
  );
});
