import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { bytesToBase58 } from '../../../src/engine/crypto/encoding.ts';
import { makeAbis } from '../../../src/sandbox/simulated/chains/evm/abis.ts';
import { makeSolanaParts } from '../../../src/sandbox/simulated/chains/solana/parts.ts';
import { rpcOf } from '../../../src/sandbox/simulated/chains/solana/rpc/methods.ts';
import { type ChainStore, openChainStore } from '../../../src/sandbox/simulated/chains/store.ts';

// Subscriptions of a Solana chain, whose reads of the store are counted.

const randomAddress = (): string => bytesToBase58(randomBytes(32));

/** A chain on which transactions are included at once. */
function openChain() {
  const store = openChainStore(':memory:');
  let reads = 0;
  const counted: ChainStore = {
    ...store,
    all(sql, ...values) {
      reads += 1;
      return store.all(sql, ...values);
    },
    first(sql, ...values) {
      reads += 1;
      return store.first(sql, ...values);
    },
  };
  const world = {
    ...{ store: counted, clock: { now: () => 1_800_000_000_000 }, confirmAfterMs: 0 },
    ...{ knownTokens: () => [], nativeSymbol: () => 'sol', plannedVaults: () => [] },
    abis: async () => makeAbis(store),
    // Only the faucet acts here, which needs no executor.
    liteSvm: async () => undefined,
  };
  const parts = makeSolanaParts(world, 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1');
  const rpc = rpcOf(parts);
  const received: { method: string; params: { subscription: number; result: { value: unknown } } }[] = [];
  const closed = new AbortController();
  const connect = () => ({
    closed: closed.signal,
    notify: (message: object) => void received.push(message as (typeof received)[number]),
  });
  return {
    received,
    connect,
    mine: (blocks: number) => parts.blocks.mine(blocks),
    async ask(connection: ReturnType<typeof connect>, method: string, ...params: unknown[]) {
      const caller = { signal: closed.signal, isLate: () => false, connection };
      const outcome = await rpc({ method, params }, caller);
      if ('error' in outcome) throw new Error(outcome.error.message);
      return outcome.result;
    },
    /** How often the store was read while `act` ran and its notifications arrived. */
    async readsOf(act: () => Promise<unknown>, notifications: number): Promise<number> {
      const [readsBefore, countBefore] = [reads, received.length];
      await act();
      await expect.poll(() => received.length).toBe(countBefore + notifications);
      return reads - readsBefore;
    },
    [Symbol.dispose]() {
      closed.abort();
      store.close();
    },
  };
}

const confirmed = { commitment: 'confirmed' };

test('a transaction costs the same reads however many accounts are subscribed', async () => {
  using chain = openChain();
  const first = chain.connect();
  const watched = randomAddress();
  const airdrop = () => chain.ask(first, 'requestAirdrop', watched, 1_000_000);
  await chain.ask(first, 'accountSubscribe', watched, confirmed);
  const alone = await chain.readsOf(airdrop, 1);
  for (let connections = 0; connections < 10; connections += 1) {
    const connection = chain.connect();
    for (let count = 0; count < 50; count += 1) {
      await chain.ask(connection, 'accountSubscribe', randomAddress(), confirmed);
      await chain.ask(connection, 'logsSubscribe', { mentions: [randomAddress()] }, confirmed);
    }
  }
  // Pushes that find nothing read a little, and their number depends on time.
  expect(await chain.readsOf(airdrop, 1)).toBeLessThan(alone + 50);
});

test('1,000 subscriptions to one account read it once', async () => {
  using chain = openChain();
  const watched = randomAddress();
  for (let connections = 0; connections < 10; connections += 1) {
    const connection = chain.connect();
    for (let count = 0; count < 100; count += 1) {
      await chain.ask(connection, 'accountSubscribe', watched, { ...confirmed, encoding: 'base64' });
    }
  }
  const airdrop = () => chain.ask(chain.connect(), 'requestAirdrop', watched, 1_000_000);
  expect(await chain.readsOf(airdrop, 1_000)).toBeLessThan(200);
  expect(new Set(chain.received.map(({ params }) => params.subscription)).size).toBe(1_000);
});

test('more transactions than one push reads are all notified, once and in order', async () => {
  using chain = openChain();
  const connection = chain.connect();
  await chain.ask(connection, 'logsSubscribe', 'all', confirmed);
  const sent: unknown[] = [];
  for (let count = 0; count < 450; count += 1) {
    sent.push(await chain.ask(connection, 'requestAirdrop', randomAddress(), 1_000_000));
  }
  await expect.poll(() => chain.received.length, { timeout: 30_000 }).toBe(450);
  expect(
    chain.received.map(({ params: { result } }) => (result.value as { signature: string }).signature),
  ).toEqual(sent);
});

test('a subscriber at `finalized` hears of a transaction that was sent before', async () => {
  using chain = openChain();
  const connection = chain.connect();
  const watched = randomAddress();
  const signature = await chain.ask(connection, 'requestAirdrop', watched, 5_000_000);
  const account = await chain.ask(connection, 'accountSubscribe', watched);
  const logs = await chain.ask(connection, 'logsSubscribe', { mentions: [watched] });
  await chain.ask(connection, 'logsSubscribe', { mentions: [watched] }, confirmed);
  await chain.mine(33);
  await expect.poll(() => chain.received.length).toBe(2);
  expect(chain.received).toMatchObject([
    {
      method: 'accountNotification',
      params: { subscription: account, result: { value: { lamports: 5_000_000 } } },
    },
    {
      method: 'logsNotification',
      params: { subscription: logs, result: { value: { signature, err: null } } },
    },
  ]);
});
