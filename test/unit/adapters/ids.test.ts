import { expect, test } from 'vitest';
import { makeIds, seededEntropy, systemEntropy } from '../../../src/adapters/runtime.ts';

test('each kind of id has its format', () => {
  const ids = makeIds(systemEntropy);
  for (let count = 0; count < 200; count += 1) {
    expect(ids.cuid2()).toMatch(/^[a-z][0-9a-z]{23}$/);
    expect(ids.cuid()).toMatch(/^c[0-9a-z]{24}$/);
    expect(ids.userDid()).toMatch(/^did:service:c[0-9a-z]{24}$/);
    expect(ids.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test('the same entropy gives the same ids', () => {
  const [one, other] = [makeIds(seededEntropy('demo')), makeIds(seededEntropy('demo'))];
  expect([one.cuid2(), one.cuid(), one.userDid(), one.uuid()]).toEqual([
    other.cuid2(),
    other.cuid(),
    other.userDid(),
    other.uuid(),
  ]);
});

test('all characters are equally likely', () => {
  const ids = makeIds(seededEntropy('dice'));
  const counts = new Map<string, number>();
  const draws = 10_000;
  for (let count = 0; count < draws; count += 1) {
    for (const character of ids.cuid().slice(1)) counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  const expected = (draws * 24) / 36;
  const chiSquared = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(counts.size).toBe(36);
  // 35 degrees of freedom: 74 is passed once in ten thousand. Bytes taken modulo 36 would give over 2,000.
  expect(chiSquared).toBeLessThan(74);
});

test('the characters that are reserved for a bucket spread ids evenly over 16 buckets', () => {
  const ids = makeIds(seededEntropy('buckets'));
  const kinds = {
    cuid2: () => Number.parseInt(ids.cuid2().slice(1, 3), 36),
    cuid: () => Number.parseInt(ids.cuid().slice(1, 3), 36),
    user: () => Number.parseInt(ids.userDid().slice('did:service:'.length).slice(1, 3), 36),
    uuid: () => Number.parseInt(ids.uuid().slice(0, 3), 16),
  };
  const draws = 16_000;
  for (const [kind, draw] of Object.entries(kinds)) {
    const counts = Array.from({ length: 16 }, () => 0);
    for (let count = 0; count < draws; count += 1) counts[draw() % 16]! += 1;
    const expected = draws / 16;
    const chiSquared = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 15 degrees of freedom: 44 is passed once in ten thousand.
    expect(chiSquared, kind).toBeLessThan(44);
  }
});
