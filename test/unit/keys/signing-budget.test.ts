import { expect, test } from 'vitest';
import { createSigningBudget } from '../../../src/engine/authorization/signing-budget.ts';

const day = 24 * 3_600_000;
const remembers = (room: number) => {
  const spent = createSigningBudget({ most: 1, room });
  let slot = 0;
  const spend = (id: string, expiryMs: number | undefined, nowMs: number) => {
    slot += 1;
    const task = { slot: String(slot), atOnce: 1, fee: undefined };
    spent.spend({ walletId: 'wallet', party: 'owner', request: { id }, expiryMs, ...task }, nowMs);
  };
  return { spent, spend };
};

test('what is not remembered for want of room is not signed, until others have expired', () => {
  const { spent, spend } = remembers(2);
  spend('a', 1_000, 0);
  spend('b', day, 0);
  expect(() => spend('c', 1_000, 1)).toThrow('as many requests as it has room for');
  expect(() => spend('a', 1_000, 2)).toThrow('sign it again');
  spend('c', 200_000, 121_001);
  expect(spent.size()).toEqual({ requests: 2, slots: 2 });
  expect(() => spend('b', day, 121_002)).toThrow('sign it again');
});

test('without room, requests without an expiry are forgotten first, the oldest of them', () => {
  const { spend } = remembers(3);
  spend('without', undefined, 0);
  spend('late', 3 * day, 0);
  spend('soon', 1_000, 0);
  spend('next', 1_000, 1);
  expect(() => spend('late', 3 * day, 1)).toThrow('sign it again');
  spend('after', 1_000, 2);
  for (const id of ['soon', 'next', 'after']) expect(() => spend(id, 1_000, 3)).toThrow('sign it again');
  expect(() => spend('without', undefined, 3)).toThrow('room');
});

test('expired requests are forgotten in time, also with room', () => {
  const { spent, spend } = remembers(100);
  for (let n = 0; n < 50; n += 1) spend(`early ${n}`, 1_000, 0);
  spend('later', 300_000, 200_000);
  expect(spent.size()).toEqual({ requests: 1, slots: 1 });
});

test('each transaction of a request needs room, which others leave when they are forgotten', () => {
  const spent = createSigningBudget({ most: 3, room: 3 });
  const spend = (id: string, slot: string, expiryMs?: number, nowMs = 0) =>
    spent.spend(
      { walletId: 'wallet', party: 'owner', request: { id }, expiryMs, slot, atOnce: 1, fee: undefined },
      nowMs,
    );
  spend('lasting', '1');
  spend('a', '2', 1_000);
  spend('a', '3', 1_000);
  // The one without an expiry is forgotten; what has been counted is signed again without room.
  spend('a', '4', 1_000);
  spend('a', '2', 1_000);
  expect(() => spend('b', '5', 1_000)).toThrow('room');
  expect(spent.size()).toEqual({ requests: 1, slots: 3 });
  for (const slot of ['5', '6', '7']) spend('own', slot, undefined, 200_000);
  expect(() => spend('own', '8', undefined, 200_000)).toThrow('sign it again');
  expect(() => spend('own', '6', undefined, 200_000)).not.toThrow();
});

test('a request is not forgotten to make room for itself', () => {
  const { spend } = remembers(1);
  const spent = createSigningBudget({ most: 3, room: 1 });
  const own = {
    walletId: 'wallet',
    party: 'owner',
    request: {},
    expiryMs: undefined,
    atOnce: 1,
    fee: undefined,
  };
  spent.spend({ ...own, slot: '1' }, 0);
  expect(() => spent.spend({ ...own, slot: '2' }, 0)).toThrow('room');
  spend('without', undefined, 0);
  expect(() => spend('other', undefined, 0)).not.toThrow();
});

test('a full memory notices once a second what has expired', () => {
  const { spend } = remembers(1);
  spend('a', 1_000, 0);
  expect(() => spend('b', 300_000, 120_500)).toThrow('room');
  expect(() => spend('b', 300_000, 121_499)).toThrow('room');
  spend('b', 300_000, 121_500);
});

test('requests are forgotten also after the clock was wrong', () => {
  const { spent, spend } = remembers(100);
  spend('ahead', undefined, 40 * day);
  spend('now', 1_000, 0);
  spend('later', 400_000, 200_000);
  expect(spent.size()).toEqual({ requests: 2, slots: 2 });
});

test('what lasts is forgotten also if it was remembered long before there was no room', () => {
  const { spend } = remembers(2);
  spend('without', undefined, 0);
  spend('soon', 100_000, 60_000);
  spend('next', 100_000, 60_000);
  expect(() => spend('soon', 100_000, 60_000)).toThrow('sign it again');
});

test('what lasted longer than a day is not forgotten once it does not', () => {
  const { spend } = remembers(1);
  spend('a', day + 300, 0);
  expect(() => spend('b', 1_000, 300)).toThrow('room');
  expect(() => spend('a', day + 300, 300)).toThrow('sign it again');
});

/** Signs for a slot of a name. */
const named = (options: { most: number; room?: number }) => {
  const spent = createSigningBudget(options);
  return (id: string, slot: string, { expiryMs, nowMs = 0, ...task }: Task = {}) =>
    spent.spend(
      {
        ...{ walletId: 'wallet', party: 'owner', request: { id }, expiryMs, slot },
        ...{ atOnce: 1, fee: undefined, ...task },
      },
      nowMs,
    );
};
interface Task {
  readonly expiryMs?: number;
  readonly nowMs?: number;
  readonly atOnce?: number;
  readonly fee?: { readonly amount: bigint; readonly ceiling: bigint };
}

test('a request that is forgotten leaves the room of its lost slots too', () => {
  const spend = named({ most: 1, room: 3 });
  spend('a', '0');
  spend('b', '0', { expiryMs: 1_000 });
  spend('a', '1');
  // The two of the first one.
  for (const id of ['c', 'd']) spend(id, id, { expiryMs: 1_000 });
  expect(() => spend('e', 'e', { expiryMs: 1_000 })).toThrow('room');
});

test('what is refused for want of room leaves all slots with their requests', () => {
  const spend = named({ most: 1, room: 4 });
  const short = { expiryMs: 600_000 };
  spend('soon', 'own', { expiryMs: 1_000 });
  for (const [id, slot] of ['x 0', 'r 0', 'x 1'].map((each) => each.split(' '))) spend(id!, slot!, short);
  expect(() => spend('r', '1', short)).toThrow('sign it again');
  // There is room again, but both have all that they may.
  expect(() => spend('r', '2', { ...short, nowMs: 200_000 })).toThrow('sign it again');
});

test('a request of several transactions loses as many times more', () => {
  const spend = named({ most: 1 });
  for (let nonce = 0; nonce < 42; nonce += 1) {
    spend('swap', `${nonce}`, { atOnce: 2 });
    spend(`other ${nonce}`, `${nonce}`);
  }
  expect(() => spend('swap', 'next', { atOnce: 2 })).toThrow('already signed for 42 transactions');
});

test('fees of one request are together at most the ceiling, and a delegation has no fee', () => {
  const spend = named({ most: 4 });
  spend('a', '0', { fee: { amount: 1n, ceiling: 3n } });
  spend('a', 'delegation');
  expect(() => spend('a', '1', { fee: { amount: 3n, ceiling: 3n } })).toThrow('4 wei, more than');
  expect(() => spend('a', '1', { fee: { amount: 2n, ceiling: 3n } })).not.toThrow();
});
