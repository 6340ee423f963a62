import { expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { requestIdsFrom } from '../../../src/server/transport-guards.ts';

test('every id is a unique UUID of version 4', () => {
  const next = requestIdsFrom(systemEntropy);
  const ids = Array.from({ length: 2_000 }, next);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the bytes are the random ones except for version and variant', () => {
  const entropy = { bytes: (length: number) => new Uint8Array(length).fill(0xff) };
  expect(requestIdsFrom(entropy)()).toBe('ffffffff-ffff-4fff-bfff-ffffffffffff');
});
