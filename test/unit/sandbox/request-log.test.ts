import { expect, test } from 'vitest';
import type { AnsweredRequest } from '../../../src/ports/requests.ts';
import { createRequestLog } from '../../../src/sandbox/requests/request-log.ts';

function answered(id: string, bytes: number): AnsweredRequest {
  return {
    id,
    method: 'GET',
    target: '/',
    httpVersion: '1.1',
    rawHeaders: [],
    rawBody: new Uint8Array(0),
    receivedAtMs: 0,
    machineMs: 0,
    durationMs: 0,
    operation: undefined,
    pathParameters: undefined,
    appId: undefined,
    userId: undefined,
    signatures: 0,
    signers: undefined,
    effects: [],
    status: 200,
    code: undefined,
    responseHeaders: [],
    responseText: 'x'.repeat(bytes),
    why: undefined,
  };
}

const KIB = 1024;

test('the log keeps the latest requests within both limits', () => {
  const limits = { requests: 7, bytes: 100 * KIB };
  const log = createRequestLog(() => 'a', limits);
  const sizes = [1, 40, 3, 90, 2, 2, 2, 2, 2, 2, 2, 2, 60, 30, 1, 99];
  for (const [index, size] of sizes.entries()) {
    log.record(answered(`r${index + 1}`, size * KIB));
    const { oldest, newest } = log.range();
    const kept = sizes.slice(oldest - 1, newest);
    expect(newest).toBe(index + 1);
    expect(kept.length).toBeLessThanOrEqual(limits.requests);
    expect(kept.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(100);
    // No more is dropped than has to be: one more request would exceed one of the limits.
    const one = sizes[oldest - 2];
    const overhead = 3 * (kept.length + 1);
    const isFull = kept.length === limits.requests;
    expect(one === undefined || isFull || kept.reduce((sum, each) => sum + each, one) + overhead > 100).toBe(
      true,
    );
    for (let sequence = 1; sequence <= newest; sequence += 1) {
      expect(log.at(sequence)?.id).toBe(sequence < oldest ? undefined : `r${sequence}`);
    }
  }
});

test('a request is found by its id, the newest one first', () => {
  const log = createRequestLog(() => 'a');
  for (const id of ['first', 'second', 'first']) log.record(answered(id, 0));
  expect([log.find('first')?.sequence, log.find('second')?.sequence, log.find('third')]).toEqual([
    3,
    2,
    undefined,
  ]);
});

test('an emptied log has another name and counts from 1', () => {
  const names = ['a', 'b'];
  const log = createRequestLog(() => names.shift()!);
  log.record(answered('one', 0));
  expect([log.name(), log.clear(), log.name()]).toEqual(['a', 1, 'b']);
  expect(log.find('one')).toBeUndefined();
  log.record(answered('two', 0));
  expect(log.find('two')?.sequence).toBe(1);
});
