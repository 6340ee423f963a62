import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { inSpan, outgoingHeaders } from '../../../src/observability/spans.ts';
import { startTelemetry, type Telemetry } from '../../../src/observability/telemetry.ts';

// OTLP specification 1.x, "OTLP/HTTP": JSON with ids in hex; 429, 502, 503 and 504 are retryable, and `Retry-After` is
// honoured; other 4xx and 5xx are not.

interface Reply {
  readonly status: number;
  readonly retryAfter?: string;
}

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: what a collector gets, compared as a whole.
  readonly body: any;
}

const registry = new Registry();
const registers = [registry];
new Counter({ registers, name: 'asked', help: 'Requests.', labelNames: ['way'] }).inc({ way: 'in' }, 3);
new Gauge({ registers, name: 'open', help: 'Open.' }).set(0.5);
const took = new Histogram({
  registers,
  name: 'took',
  help: 'Seconds.',
  labelNames: ['way'],
  buckets: [0.1, 1],
});
for (const [way, seconds] of [
  ['out', 0.05],
  ['in', 3],
  ['out', 0.1],
  ['out', 0.5],
] as const)
  took.observe({ way }, seconds);

const started: { readonly telemetry: Telemetry; stop(): void }[] = [];
afterEach(async () => {
  for (const { telemetry, stop } of started.splice(0)) {
    stop();
    await telemetry.close();
  }
});

/** Telemetry, and a collector that gives these replies to traces, then 200. `undefined`: it never answers. */
async function start(
  replies: readonly Reply[] | undefined,
  share = 1,
  more: Pick<Parameters<typeof startTelemetry>[0], 'closeMs'> = {},
) {
  const left = [...(replies ?? [])];
  const received: Received[] = [];
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(gunzipSync(Buffer.concat(chunks)).toString('utf8'));
    received.push({ path: request.url!, headers: request.headers, body });
    if (replies === undefined) return;
    const next = request.url === '/v1/traces' ? left.shift() : undefined;
    const { status, retryAfter } = next ?? { status: 200 };
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end();
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const logged: object[] = [];
  const note = (fields: object): void => void logged.push(fields);
  const telemetry = startTelemetry({
    ...{ url: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`, headers: { 'x-key': 'hush' } },
    ...{ share, service: 'shop', compression: 'gzip', version: '1.2.3', entropy: systemEntropy },
    metrics: { registry },
    log: { debug: note, info: note, warn: note, error: note },
    ...more,
  });
  const stop = (): void => {
    collector.closeAllConnections();
    collector.close();
  };
  started.push({ telemetry, stop });
  const to = (path: string) => received.filter((each) => each.path === path);
  return { telemetry, logged, traces: () => to('/v1/traces'), metrics: () => to('/v1/metrics') };
}

function request(telemetry: Telemetry, status = 200): Promise<void> {
  return telemetry.tracer.request({}, async () => {
    await inSpan({ name: 'step', kind: 'client', attributes: { tries: 2 } }, async () => undefined);
    telemetry.tracer.describe({ operation: 'getWallet', method: 'GET', status, code: undefined });
  });
}

test('spans arrive with their parents, and the resource says whose they are', async () => {
  const { telemetry, traces } = await start([]);
  await request(telemetry, 500);
  await telemetry.close();
  const [{ headers, body }] = traces() as [Received];
  expect(headers).toMatchObject({ 'x-key': 'hush', 'content-type': 'application/json' });
  const [{ resource, scopeSpans }] = body.resourceSpans;
  expect(resource.attributes).toEqual(
    expect.arrayContaining([
      { key: 'service.name', value: { stringValue: 'shop' } },
      { key: 'service.version', value: { stringValue: '1.2.3' } },
      { key: 'service.instance.id', value: { stringValue: expect.stringMatching(/^[0-9a-f]{16}$/) } },
    ]),
  );
  const [step, whole] = scopeSpans[0].spans;
  expect(whole).toMatchObject({ name: 'getWallet', kind: 2, status: { code: 2 } });
  expect(step).toMatchObject({ name: 'step', kind: 3, parentSpanId: whole.spanId, traceId: whole.traceId });
  expect(step.attributes).toEqual([{ key: 'tries', value: { intValue: 2 } }]);
});

test('a trace of a caller is continued to the next system, with its state', async () => {
  const { telemetry, traces } = await start([], 0);
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  let passedOn: Readonly<Record<string, string>> = {};
  await telemetry.tracer.request({ traceparent, tracestate: 'a=1,b=2' }, async () => {
    passedOn = outgoingHeaders();
  });
  await request(telemetry);
  await telemetry.close();
  const [{ body }] = traces() as [Received];
  const { spans } = body.resourceSpans[0].scopeSpans[0];
  expect(spans).toMatchObject([
    { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: '00f067aa0ba902b7', traceState: 'a=1,b=2' },
  ]);
  const own = `00-4bf92f3577b34da6a3ce929d0e0e4736-${spans[0].spanId}-01`;
  expect(passedOn).toEqual({ traceparent: own, tracestate: 'a=1,b=2' });
});

test('each kind of metric arrives', async () => {
  const { telemetry, metrics } = await start([]);
  await telemetry.close();
  const scopes = metrics().at(-1)?.body.resourceMetrics[0].scopeMetrics;
  const sent = scopes.find(({ scope }: { scope: { name: string } }) => scope.name === 'custos').metrics;
  expect(sent).toMatchObject([
    {
      name: 'asked',
      sum: {
        ...{ aggregationTemporality: 2, isMonotonic: true },
        dataPoints: [{ attributes: [{ key: 'way', value: { stringValue: 'in' } }], asDouble: 3 }],
      },
    },
    { name: 'open', gauge: { dataPoints: [{ attributes: [], asDouble: 0.5 }] } },
    {
      name: 'took',
      histogram: {
        aggregationTemporality: 2,
        dataPoints: [
          {
            attributes: [{ key: 'way', value: { stringValue: 'out' } }],
            ...{ bucketCounts: [2, 1, 0], explicitBounds: [0.1, 1], count: 3, sum: 0.65 },
          },
          {
            attributes: [{ key: 'way', value: { stringValue: 'in' } }],
            ...{ bucketCounts: [0, 0, 1], explicitBounds: [0.1, 1], count: 1, sum: 3 },
          },
        ],
      },
    },
  ]);
});

test.each([429, 502, 503, 504])('%s is tried again, after what `Retry-After` says', async (status) => {
  const { telemetry, traces, logged } = await start([{ status, retryAfter: '0' }]);
  await request(telemetry);
  await telemetry.close();
  expect(traces()).toHaveLength(2);
  expect(traces()[0]!.body).toEqual(traces()[1]!.body);
  expect(logged).toEqual([]);
});

test.each([400, 401, 413, 500, 501])('%s is not tried again, and is logged', async (status) => {
  const { telemetry, traces, logged } = await start([{ status, retryAfter: '0' }]);
  await request(telemetry);
  await telemetry.close();
  expect(traces()).toHaveLength(1);
  expect(logged).toEqual([{ status }]);
});

test('a collector that never answers holds up no request, and a stop for no longer than it may', async () => {
  const { telemetry, traces } = await start(undefined, 1, { closeMs: 1_000 });
  for (let index = 0; index < 6_000; index += 1) await request(telemetry);
  const before = performance.now();
  await telemetry.close();
  expect(performance.now() - before).toBeLessThan(20_000);
  // One export is on its way; the stop sends the 5,000 spans that the queue holds.
  const sent = traces().flatMap(({ body }) => body.resourceSpans[0].scopeSpans[0].spans);
  expect(sent).toHaveLength(5_500);
});
