import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { administerApps } from '../../../src/admin/administration.ts';
import { packageRoot } from '../../../src/config/package-root.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { startScriptedNode } from '../../support/scripted-node.ts';

const HEAD_SECONDS = 1_700_000_000;

let production: TestProduction;
let text: string;
let lines: readonly string[];

const sampleOf = (series: string): number => {
  const line = lines.find((each) => each.startsWith(`${series} `));
  if (line === undefined) throw new Error(`no series \`${series}\` in:\n${lines.join('\n')}`);
  return Number(line.slice(series.length + 1));
};

beforeAll(async () => {
  const node = await startScriptedNode((method) =>
    method === 'eth_chainId'
      ? { result: '0x1' }
      : { result: { number: '0x1', timestamp: `0x${HEAD_SECONDS.toString(16)}` } },
  );
  const url = await freshPostgres();
  const app = await administerApps({ kind: 'postgres', url }).createApp('Acme');
  production = await startProduction({
    DATABASE_URL: url,
    CUSTOS_RPC: `eip155:1=${node.url}`,
    CUSTOS_CONFIRMATIONS: 'eip155:1=off',
    CUSTOS_RATE_LIMIT: '3/3',
  });
  const headers = {
    ...production.proxied,
    'service-app-id': app.id,
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'content-type': 'application/json',
  };
  const create = async (body: object): Promise<void> => {
    await fetch(`${production.baseUrl}/v1/wallets`, { method: 'POST', headers, body: JSON.stringify(body) });
  };
  await create({ chain_type: 'ethereum' });
  await Promise.all(Array.from({ length: 20 }, () => create({ chain_type: 'none' })));
  const scrape = async () => (await fetch(`${production.adminUrl}/metrics`)).text();
  // The first scrape reads the head of the chain, and the second counts the calls that this took.
  await scrape();
  text = await scrape();
  lines = text.split('\n');
  return async () => {
    await production[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
  };
});

test('requests are counted and timed by operation, and refusals by code', () => {
  expect(sampleOf('custos_http_requests_total{operation="createWallet",status="200"}')).toBe(1);
  const refused = sampleOf('custos_http_requests_total{operation="createWallet",status="400"}');
  const limited = sampleOf('custos_http_requests_total{operation="createWallet",status="429"}');
  expect(refused + limited).toBe(20);
  const duration = 'custos_http_request_duration_seconds';
  expect(sampleOf(`${duration}_count{operation="createWallet",class="2xx"}`)).toBe(1);
  expect(sampleOf(`${duration}_bucket{le="+Inf",operation="createWallet",class="4xx"}`)).toBe(20);
  expect(sampleOf('custos_http_errors_total{code="invalid_data",class="4xx"}')).toBe(refused);
  expect(sampleOf('custos_http_errors_total{code="too_many_requests",class="4xx"}')).toBe(limited);
  expect(sampleOf('custos_rate_limit_refusals_total{limit="app"}')).toBe(limited);
});

test('the key store, the database, the jobs and the chains are measured', () => {
  expect(
    sampleOf('custos_key_store_duration_seconds_count{call="createWalletKey",result="ok"}'),
  ).toBeGreaterThan(0);
  expect(sampleOf('custos_database_transaction_duration_seconds_count{result="committed"}')).toBeGreaterThan(
    0,
  );
  expect(sampleOf('custos_database_connections_max')).toBe(10);
  const connections = ['idle', 'busy'].map((state) =>
    sampleOf(`custos_database_connections{state="${state}"}`),
  );
  expect(Math.max(...connections)).toBeGreaterThan(0);
  expect(sampleOf('custos_database_waiting')).toBe(0);
  expect(sampleOf('custos_admission_waiting{kind="writes"}')).toBe(0);
  expect(sampleOf('custos_job_lag_seconds{work="transactions"}')).toBe(0);
  expect(sampleOf('custos_webhook_deliveries_pending')).toBe(0);
  expect(sampleOf('custos_chain_call_duration_seconds_count{chain="eip155:1",result="ok"}')).toBe(2);
  const age = sampleOf('custos_chain_head_age_seconds{chain="eip155:1"}');
  expect(Math.abs(Date.now() / 1000 - HEAD_SECONDS - age)).toBeLessThan(60);
  const utilization = sampleOf('custos_event_loop_utilization');
  expect(utilization).toBeGreaterThan(0);
  expect(utilization).toBeLessThanOrEqual(1);
});

const monitoring = join(packageRoot(), 'packaging', 'monitoring');

test('dashboard and alert rules use metrics that exist, in the form that their type has', () => {
  const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]));
  const isServed = (name: string): boolean =>
    types.get(name) === 'gauge' ||
    types.get(name) === 'counter' ||
    types.get(name.replace(/_(bucket|sum|count)$/, '')) === 'histogram';
  const dashboard = JSON.parse(readFileSync(join(monitoring, 'dashboard.json'), 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const rules = parse(readFileSync(join(monitoring, 'alerts.yaml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  const shown = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const watched = rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr));
  const namesIn = (expressions: readonly string[]) =>
    new Set(expressions.join(' ').match(/\b(custos|nodejs|process)_\w+/g));
  expect([...namesIn([...shown, ...watched])].filter((name) => !isServed(name))).toEqual([]);
  // Every metric is shown.
  const used = new Set([...namesIn(shown)].map((name) => name.replace(/_(bucket|sum|count)$/, '')));
  const unused = [...types.keys()].filter((name) => name?.startsWith('custos_') && !used.has(name));
  expect(unused).toEqual([]);
});

test('every alert is documented', () => {
  const document = readFileSync(join(packageRoot(), 'docs', 'monitoring.md'), 'utf8');
  const rules = readFileSync(join(monitoring, 'alerts.yaml'), 'utf8');
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const documented = [...document.matchAll(/^\| `(Custos\w+)` \|/gm)].map(([, name]) => name);
  expect(documented).toEqual(alerts);
});

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

// With Debian's package `prometheus`.
test.skipIf(process.env.TEST_LONG !== '1' || !hasPromtool)('promtool accepts the alert rules', () => {
  const run = (...args: string[]) => spawnSync('promtool', args, { cwd: monitoring, encoding: 'utf8' });
  expect(run('check', 'rules', 'alerts.yaml')).toMatchObject({ status: 0 });
  expect(run('test', 'rules', 'alerts.test.yaml')).toMatchObject({ status: 0 });
});

test('every metric is documented, and every documented metric exists', () => {
  const document = readFileSync(join(packageRoot(), 'docs', 'monitoring.md'), 'utf8');
  const documented = [...document.matchAll(/^\| `(custos_\w+)` \|/gm)].map(([, name]) => name);
  const served = [...text.matchAll(/^# TYPE (custos_\w+) /gm)].map(([, name]) => name);
  expect(served.toSorted()).toEqual(documented.toSorted());
});
