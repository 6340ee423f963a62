import { request } from 'undici';
import { expect, test } from 'vitest';
import { startAdminServer } from '../../../src/admin/admin-server.ts';
import { addRequestsInFlight } from '../../../src/observability/gauges.ts';
import { createServerMetrics } from '../../../src/observability/server-metrics.ts';
import { keptLog } from './toy-server.ts';

async function start(checkReady: () => Promise<void> = async () => undefined) {
  const metrics = createServerMetrics();
  addRequestsInFlight(metrics.registry, () => 3);
  const server = await startAdminServer({
    host: '127.0.0.1',
    port: 0,
    metrics: metrics.registry,
    checkReady,
    log: keptLog(),
  });
  return {
    metrics,
    port: server.port,
    async get(path: string, method = 'GET') {
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
      return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

const type = 'application/json; charset=utf-8';

test('it is healthy, and ready while the check passes', async () => {
  await using admin = await start();
  expect(await admin.get('/healthz')).toEqual({ status: 200, type, text: '{"status":"ok"}' });
  expect(await admin.get('/readyz')).toEqual({ status: 200, type, text: '{"status":"ready"}' });
});

test('it is healthy but not ready while the database is unavailable', async () => {
  await using admin = await start(() => Promise.reject(new Error('connection refused')));
  expect(await admin.get('/healthz')).toMatchObject({ status: 200 });
  expect(await admin.get('/readyz')).toEqual({ status: 503, type, text: '{"status":"not ready"}' });
});

test('requests are counted and timed by operation and status', async () => {
  await using admin = await start();
  admin.metrics.request('createWallet', 200, 3, undefined);
  admin.metrics.request('createWallet', 200, 30, undefined);
  admin.metrics.request('createWallet', 400, 1, 'invalid_data');
  const { status, text } = await admin.get('/metrics');
  expect(status).toBe(200);
  for (const line of [
    'custos_http_requests_total{operation="createWallet",status="200"} 2',
    'custos_http_requests_total{operation="createWallet",status="400"} 1',
    'custos_http_request_duration_seconds_bucket{le="0.005",operation="createWallet",class="2xx"} 1',
    'custos_http_request_duration_seconds_sum{operation="createWallet",class="2xx"} 0.033',
    'custos_http_requests_in_flight 3',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
});

test('other paths are not found', async () => {
  await using admin = await start();
  expect(await admin.get('/')).toEqual({ status: 404, type, text: '{"error":"Not found"}' });
  expect(await admin.get('/metrics', 'POST')).toEqual({
    status: 405,
    type,
    text: '{"error":"method not allowed"}',
  });
});

test('pages of other sites get nothing; scrapers dial it by any name', async () => {
  await using admin = await start();
  const status = async (path: string, headers: Record<string, string>) => {
    const { statusCode, body } = await request(`http://127.0.0.1:${admin.port}${path}`, { headers });
    await body.dump();
    return statusCode;
  };
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    for (const origin of ['https://site.example', 'http://localhost:3000', 'null']) {
      expect(await status(path, { origin })).toBe(404);
    }
    expect(await status(path, { host: 'site.example', origin: 'http://other.example' })).toBe(404);
    expect(await status(path, { host: 'custos-1.internal:9464' })).toBe(200);
    expect(await status(path, { origin: `http://127.0.0.1:${admin.port}` })).toBe(200);
  }
});
