import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSigningBudget, SigningBudgetError } from '../../../src/engine/authorization/signing-budget.ts';

// Random requests are signed for random nonces, in any order, and compared with what may be: each nonce takes effect
// once, for one of the requests that were signed for it.

const MAX_LOST = 20;

/**
 * Whether each slot can count for a request that was signed for it, with none of them having more than it may.
 *
 * Tries all that may be, which are few.
 */
function canAllCount(
  signed: readonly (readonly [slot: number, requests: readonly number[]])[],
  most: number,
) {
  const counts = new Map<number, number>();
  const place = (at: number): boolean => {
    const [, requests] = signed[at] ?? [];
    if (requests === undefined) return true;
    return requests.some((request) => {
      const count = counts.get(request) ?? 0;
      if (count >= most) return false;
      counts.set(request, count + 1);
      if (place(at + 1)) return true;
      counts.set(request, count);
      return false;
    });
  };
  return place(0);
}

const steps = fc.array(fc.record({ request: fc.nat(4), slot: fc.nat(9) }), { maxLength: 60 });

test.each([1, 2, 3])('what is signed %i times for each request is what may take effect', (most) => {
  fc.assert(
    fc.property(steps, (all) => {
      const spent = createSigningBudget({ most });
      /** By slot. */
      const signed = new Map<number, Set<number>>();
      for (const { request, slot } of all) {
        const signedWith = (mayCount: readonly number[]) =>
          [...signed.entries()].map(
            ([other, requests]) => [other, other === slot ? mayCount : [...requests]] as const,
          );
        const known = signed.has(slot)
          ? signedWith([request])
          : [...signedWith([]), [slot, [request]] as const];
        const mayBe = canAllCount(known, most);
        const spend = () =>
          spent.spend(
            {
              ...{ walletId: 'wallet', party: 'owner', request: { request }, expiryMs: undefined },
              ...{ slot: String(slot), atOnce: 1, fee: undefined },
            },
            0,
          );
        if (mayBe) {
          spend();
          signed.set(slot, (signed.get(slot) ?? new Set()).add(request));
        } else {
          expect(spend).toThrow(SigningBudgetError);
        }
      }
    }),
    { numRuns: 500 },
  );
});

interface Spent {
  readonly id: string;
  readonly slot: number | string;
  readonly party?: string;
  readonly walletId?: string;
}

const opened = (most: number) => {
  const spent = createSigningBudget({ most });
  return ({ id, slot, party = 'owner', walletId = 'wallet' }: Spent) =>
    spent.spend(
      {
        ...{ walletId, party, request: { id }, expiryMs: undefined },
        ...{ slot: String(slot), atOnce: 1, fee: undefined },
      },
      0,
    );
};

test('of requests that are signed for the same nonces, all but the first get the next one', () => {
  const spend = opened(1);
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (let nonce = 0; nonce < ids.length; nonce += 1)
    // The first one has it: it is not signed again.
    for (const id of ids.slice(nonce)) spend({ id, slot: nonce });
  for (const id of ids) expect(() => spend({ id, slot: 6 })).toThrow('already signed for a transaction;');
});

test('a nonce does not count for a request of another party, nor in another wallet', () => {
  const spend = opened(1);
  spend({ id: 'a', slot: 0, party: 'signer' });
  spend({ id: 'b', slot: 0, walletId: 'another' });
  spend({ id: 'c', slot: 0 });
  expect(() => spend({ id: 'c', slot: 1 })).toThrow('sign it again');
});

test('a request that has lost its nonce is signed for twenty more', () => {
  const spend = opened(2);
  for (let nonce = 0; nonce < 2 + MAX_LOST; nonce += 1) {
    spend({ id: 'a', slot: nonce });
    spend({ id: `other ${nonce}`, slot: nonce });
  }
  expect(() => spend({ id: 'a', slot: 'next' })).toThrow('already signed for 22 transactions');
});

test('a hundred requests are searched for one that a nonce may count for, however many were signed for it', () => {
  const among = (count: number) => {
    const spend = opened(1);
    // Each has a nonce of its own by now, so it takes no other.
    for (let n = 0; n < count; n += 1) spend({ id: `${n}`, slot: 0 });
    for (let n = 0; n < count - 1; n += 1) spend({ id: `${n}`, slot: `of ${n}` });
    spend({ id: 'last', slot: 0 });
    return () => spend({ id: 'last', slot: 1 });
  };
  expect(among(99)).not.toThrow();
  expect(among(100)).toThrow('sign it again');
});
