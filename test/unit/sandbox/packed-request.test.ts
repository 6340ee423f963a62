import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AnsweredRequest } from '../../../src/ports/requests.ts';
import { createByteQueue } from '../../../src/sandbox/requests/packed-request.ts';
import { createRequestLog } from '../../../src/sandbox/requests/request-log.ts';

const word = fc.stringMatching(/^[a-z0-9-]{1,12}$/);
/** What a header may contain (RFC 9110 section 5.5), as Node reads it. */
const headerValue = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
});
const anyText = fc.string({ unit: 'grapheme', maxLength: 200 });
const perhaps = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const anyRequest: fc.Arbitrary<AnsweredRequest> = fc.record({
  id: word,
  method: fc.constantFrom('GET', 'POST'),
  target: word.map((path) => `/${path}?a=%0A`),
  httpVersion: fc.constant('1.1'),
  rawHeaders: fc.array(fc.tuple(word, headerValue)).map((pairs) => pairs.flat()),
  rawBody: fc.uint8Array({ maxLength: 300 }),
  receivedAtMs: fc.integer({ min: 0 }),
  machineMs: fc.double({ noNaN: true }),
  durationMs: fc.double({ noNaN: true }),
  operation: perhaps(word),
  pathParameters: perhaps(fc.dictionary(word, anyText, { noNullPrototype: true })),
  appId: perhaps(word),
  userId: perhaps(word),
  signatures: fc.nat(9),
  signers: perhaps(fc.uniqueArray(word).map((keys) => new Set(keys))),
  effects: fc.array(
    fc.record({
      events: fc.array(fc.record({ id: word, type: word })),
      transactions: fc.array(word),
      policies: fc.array(word, { minLength: 1 }),
    }),
  ),
  status: fc.integer({ min: 0, max: 599 }),
  code: perhaps(word),
  responseHeaders: fc
    .dictionary(word, headerValue, { noNullPrototype: true })
    .map((headers) => [headers] as const),
  responseText: perhaps(anyText),
  why: perhaps(
    fc.record({
      kind: fc.constant('policy' as const),
      hint: anyText,
      evidence: fc.dictionary(word, anyText, { noNullPrototype: true }),
      problems: fc.array(
        fc.record({
          ...{ subject: anyText, expected: anyText, came: anyText, text: anyText, next_step: anyText },
          at_fault: fc.constantFrom(null, { in: 'body' as const, pointer: '/a' }),
        }),
      ),
      repairs: fc.array(
        fc.record({ kind: fc.constant('command' as const), title: anyText, command: anyText }),
      ),
    }),
  ),
});

test('a request is read from the log as it was recorded', () => {
  fc.assert(
    fc.property(fc.array(anyRequest, { minLength: 1, maxLength: 8 }), (requests) => {
      const log = createRequestLog(() => 'a', { requests: 5, bytes: 1_000_000 });
      for (const request of requests) log.record(request);
      const { oldest, newest } = log.range();
      for (let sequence = oldest; sequence <= newest; sequence += 1) {
        const { rawBody, ...found } = { ...log.at(sequence)! };
        const { rawBody: sent, ...expected } = requests[sequence - 1]!;
        expect(found).toEqual(expected);
        expect(Buffer.from(rawBody).equals(sent)).toBe(true);
      }
      expect(newest - oldest + 1).toBe(Math.min(5, requests.length));
    }),
    { numRuns: 300 },
  );
});

test('bytes are read as they were added, wherever they lie in the pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 60 }), fc.nat(30), (all, keep) => {
      const queue = createByteQueue(16);
      const kept: { position: number; bytes: Uint8Array }[] = [];
      for (const bytes of all) {
        kept.push({ position: queue.end(), bytes });
        // As a request is packed: without a copy where it fits into a piece.
        const room = queue.room(bytes.length + 3);
        if (room === undefined) queue.add(bytes);
        else {
          room.set(bytes, queue.offset());
          queue.keep(bytes.length);
        }
        if (kept.length > keep) queue.drop(kept.shift()!.bytes.length);
        for (const { position, bytes: added } of kept) {
          expect([...queue.read(position, added.length)]).toEqual([...added]);
        }
      }
    }),
  );
});

test('the log refers to nothing of a request, and its memory is bounded by its limit', async () => {
  const program = join(import.meta.dirname, 'measure-request-log.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program]);
  const { referred, requests, grownToLimit } = JSON.parse(stdout) as Record<string, number>;
  expect(referred).toBeLessThan(10);
  expect(requests).toBeGreaterThan(500);
  expect(grownToLimit).toBeLessThan(1.5);
});
