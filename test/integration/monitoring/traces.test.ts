import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { administerApps } from '../../../src/admin/administration.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { startProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status: { code: number };
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerId = '00f067aa0ba902b7';
const spans: SentSpan[] = [];
const metrics: string[] = [];
const collectorHeaders: IncomingHttpHeaders[] = [];
const logged: Record<string, unknown>[] = [];
const secrets: string[] = [];
let everything = '';

beforeAll(async () => {
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = gunzipSync(Buffer.concat(chunks)).toString('utf8');
    collectorHeaders.push(request.headers);
    everything += text;
    const body = JSON.parse(text);
    if (request.url === '/otlp/v1/traces') spans.push(...body.resourceSpans[0].scopeSpans[0].spans);
    if (request.url === '/otlp/v1/metrics')
      metrics.push(
        ...body.resourceMetrics[0].scopeMetrics[0].metrics.map(({ name }: { name: string }) => name),
      );
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const note = (fields: object): void => void logged.push(fields as Record<string, unknown>);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const url = await freshPostgres();
  const app = await administerApps({ kind: 'postgres', url }).createApp('Acme');
  const { port } = collector.address() as AddressInfo;
  const env = {
    DATABASE_URL: url,
    CUSTOS_OTLP_URL: `http://127.0.0.1:${port}/otlp`,
    CUSTOS_OTLP_HEADERS: 'x-collector-key=hush',
    CUSTOS_TRACE_SHARE: '0',
  };
  const production = await startProduction(env, log);
  const headers = {
    ...production.proxied,
    'service-app-id': app.id,
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'content-type': 'application/json',
  };
  const ask = async (path: string, body: object, more: Record<string, string> = {}) => {
    const request = { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) };
    return (await (await fetch(production.baseUrl + path, request)).json()) as { id: string };
  };
  const traced = { traceparent: `00-${traceId}-${callerId}-01` };
  const wallet = await ask('/v1/wallets', { chain_type: 'ethereum' });
  await ask('/v1/wallets', { chain_type: 'none' }, traced);
  const signing = { method: 'personal_sign', params: { message: 'a secret message', encoding: 'utf-8' } };
  await ask(`/v1/wallets/${wallet.id}/rpc`, signing, traced);
  secrets.push(app.secret, wallet.id, 'a secret message', app.id);
  await production.close();
  return () => void collector.close();
});

test('a request that continues a trace is recorded with its steps, below the span of the caller', () => {
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  const [request] = spans.filter(({ name }) => name === 'walletRpc');
  expect(request).toMatchObject({ parentSpanId: callerId, kind: 2, status: { code: 0 } });
  const childrenOf = (parent: SentSpan) => spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId);
  const work = childrenOf(request!).find(({ name }) => name === 'unit of work')!;
  expect(childrenOf(request!).map(({ name }) => name)).toEqual(['validation', 'unit of work']);
  expect(childrenOf(work).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['policies', 'key store signWithWallet']),
  );
  for (const { startTimeUnixNano: start, endTimeUnixNano: end } of spans)
    expect(BigInt(end)).toBeGreaterThanOrEqual(BigInt(start));
});

test('a refusal has its code', () => {
  const [refused] = spans.filter(({ name }) => name === 'createWallet');
  expect(refused!.attributes).toEqual([
    { key: 'http.request.method', value: { stringValue: 'POST' } },
    { key: 'http.response.status_code', value: { intValue: 400 } },
    { key: 'error.type', value: { stringValue: 'invalid_data' } },
  ]);
});

test('every line of a request in the log has the id of its trace, sampled or not', () => {
  const lines = logged.filter(({ request_id }) => request_id !== undefined);
  expect(lines.map((line) => line.trace_id)).toEqual([
    expect.stringMatching(/^[0-9a-f]{32}$/),
    traceId,
    traceId,
  ]);
});

test('metrics are sent too, with the headers of the collector', () => {
  expect(metrics).toContain('custos_http_requests_total');
  expect(collectorHeaders.every((each) => each['x-collector-key'] === 'hush')).toBe(true);
});

test('nothing secret, and no id of a customer, is sent', () => {
  expect(secrets.filter((secret) => everything.includes(secret))).toEqual([]);
});
