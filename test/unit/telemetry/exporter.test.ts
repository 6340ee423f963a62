import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/entropy.ts';
import { createExporter } from '../../../src/telemetry/exporter.ts';

// OTLP specification, "OTLP/HTTP Response": 429, 502, 503 and 504 are retryable and `Retry-After` is honoured; other 4xx and
// 5xx are not.

interface Reply {
  readonly status: number;
  readonly retryAfter?: string;
}

/** What a collector that answers in this way gets, and what is logged. */
async function exported(replies: readonly Reply[], signal?: AbortSignal) {
  const left = [...replies];
  let received = 0;
  const collector = createServer((request, response) => {
    request.resume();
    received += 1;
    const { status, retryAfter } = left.shift() ?? { status: 200 };
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end();
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const logged: object[] = [];
  const note = (fields: object): void => void logged.push(fields);
  const { port } = collector.address() as AddressInfo;
  const send = createExporter({
    url: `http://127.0.0.1:${port}`,
    headers: {},
    entropy: systemEntropy,
    log: { debug: note, info: note, warn: note, error: note },
  });
  await send('/v1/traces', {}, signal);
  collector.closeAllConnections();
  collector.close();
  return { received, logged };
}

test.each([429, 502, 503, 504])('%s is tried again, after what `Retry-After` says', async (status) => {
  const busy = { status, retryAfter: '0' };
  expect(await exported([busy, busy])).toEqual({ received: 3, logged: [] });
});

test('a date in `Retry-After` is understood', async () => {
  const past = { status: 503, retryAfter: new Date(0).toUTCString() };
  expect(await exported([past])).toEqual({ received: 2, logged: [] });
});

test.each([400, 401, 413, 500, 501])('%s is not tried again', async (status) => {
  expect(await exported([{ status, retryAfter: '0' }])).toEqual({ received: 1, logged: [{ status }] });
});

test('a batch is given up after six tries, after a long pause is asked for, or at the stop', async () => {
  const busy = { status: 503, retryAfter: '0' };
  expect(await exported(Array(10).fill(busy))).toEqual({ received: 6, logged: [{ status: 503 }] });
  const long = { status: 503, retryAfter: '3600' };
  expect(await exported([long])).toEqual({ received: 1, logged: [{ status: 503 }] });
  expect(await exported([busy], AbortSignal.abort())).toEqual({ received: 1, logged: [{ status: 503 }] });
});
