import { describe, expect, test } from 'vitest';
import { countQuorum, fewestSignatures, type Quorum } from '../../../src/engine/authorization/quorum.ts';

function quorum(parts: Partial<Quorum>): Quorum {
  return { id: 'q', threshold: null, publicKeys: [], users: [], quorums: [], ...parts };
}

const desk = quorum({ id: 'desk', threshold: 2, publicKeys: ['ann', 'bob', 'cid'] });

describe('countQuorum', () => {
  test('countQuorum counts a repeated member once', () => {
    const twice = quorum({ threshold: 2, publicKeys: ['ann', 'ann', 'bob'] });
    expect(countQuorum(twice, new Set(['ann']))).toEqual({
      count: 1,
      threshold: 2,
      missing: 1,
      satisfied: false,
    });
  });

  test('countQuorum requires every member without a threshold', () => {
    const all = quorum({ publicKeys: ['ann', 'bob'], users: [{ userId: 'eve', liveKeys: ['e1', 'e2'] }] });
    expect(countQuorum(all, new Set(['ann', 'bob']))).toMatchObject({ threshold: 3, missing: 1 });
    expect(countQuorum(all, new Set(['ann', 'bob', 'e2']))).toMatchObject({ missing: 0, satisfied: true });
  });

  test('countQuorum counts a user once, by any valid key', () => {
    const users = quorum({
      threshold: 2,
      users: [{ userId: 'eve', liveKeys: ['e1', 'e2'] }],
      publicKeys: ['ann'],
    });
    expect(countQuorum(users, new Set(['e1', 'e2']))).toMatchObject({ count: 1, satisfied: false });
  });

  test('countQuorum counts a nested quorum as one member when its own threshold is met', () => {
    const board = quorum({ threshold: 2, publicKeys: ['zoe'], quorums: [desk] });
    expect(countQuorum(board, new Set(['ann', 'bob', 'cid'])).count).toBe(1);
    expect(countQuorum(board, new Set(['ann', 'zoe'])).count).toBe(1);
    expect(countQuorum(board, new Set(['ann', 'bob', 'zoe']))).toMatchObject({ count: 2, satisfied: true });
  });

  test('countQuorum counts a key in both of its places', () => {
    const board = quorum({ threshold: 2, publicKeys: ['ann'], quorums: [{ ...desk, threshold: 1 }] });
    expect(countQuorum(board, new Set(['ann']))).toMatchObject({ count: 2, satisfied: true });
  });

  test('countQuorum is never satisfied without members, whatever the threshold', () => {
    for (const threshold of [null, 0, 1]) {
      expect(countQuorum(quorum({ threshold }), new Set(['ann'])).satisfied).toBe(false);
    }
    expect(countQuorum(quorum({ quorums: [quorum({ id: 'gone' })] }), new Set()).satisfied).toBe(false);
  });
});

test('fewestSignatures sums the cheapest members, or stops if keys repeat', () => {
  expect(fewestSignatures(desk)).toBe(2);
  expect(fewestSignatures(quorum({ threshold: 2, publicKeys: ['zoe'], quorums: [desk] }))).toBe(3);
  expect(fewestSignatures(quorum({ threshold: 1, publicKeys: ['zoe'], quorums: [desk] }))).toBe(1);
  expect(fewestSignatures(quorum({ threshold: 2, publicKeys: ['ann'], quorums: [desk] }))).toBe(1);
});
