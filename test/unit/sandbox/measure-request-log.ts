import type { AnsweredRequest } from '../../../src/ports/requests.ts';
import { createRequestLog } from '../../../src/sandbox/requests/request-log.ts';

// A process of its own, started with --expose-gc: collecting the heap of all tests takes a second each time. Prints how
// many requests the log still refers to, how many it has, and how much its memory grew.

const LIMIT = 4_000_000;

const sample: AnsweredRequest = {
  ...{ id: 'sample', method: 'POST', target: '/v1/wallets?a=%0A', httpVersion: '1.1' },
  ...{ rawHeaders: [], rawBody: Buffer.alloc(0), receivedAtMs: 0, machineMs: 0, durationMs: 1 },
  ...{ operation: 'createWallet', pathParameters: undefined, appId: 'acme', userId: undefined },
  ...{ signatures: 0, signers: undefined, effects: [], status: 200, code: undefined },
  ...{ responseHeaders: [{ 'content-type': 'application/json' }], responseText: '{}', why: undefined },
};

/** What was referred to in a turn is kept until its end, and buffers are freed by other threads. */
async function collect(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc!();
  }
}

const log = createRequestLog(() => 'a', { requests: 10_000, bytes: LIMIT });
const recorded: WeakRef<object>[] = [];
await collect();
const before = process.memoryUsage().arrayBuffers;
for (let count = 0; count < 5_000; count += 1) {
  const rawHeaders = Array.from({ length: 16 }, (_, index) => `value ${index}`);
  recorded.push(new WeakRef(rawHeaders));
  log.record({ ...sample, rawHeaders, rawBody: Buffer.alloc(2_000) });
}
await collect();
const { oldest, newest } = log.range();
process.stdout.write(
  JSON.stringify({
    referred: recorded.filter((reference) => reference.deref() !== undefined).length,
    requests: newest - oldest + 1,
    grownToLimit: (process.memoryUsage().arrayBuffers - before) / LIMIT,
  }),
);
