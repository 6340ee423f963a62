import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { migrations } from '../src/storage/migrations/migrations.ts';
import { MIGRATIONS_TABLE } from '../src/storage/migrations/schema-migration.ts';
import { splitStatements } from '../src/storage/schema/migration-statements.ts';
import { startPostgres } from './measure/postgres.ts';
import { cpuMicrosecondsOf, residentMegabytesOf } from './measure/process-usage.ts';
import { buildBundle } from './peers.ts';
import { programs } from './servers/custos.ts';
import { freePort, launch, type RunningServer, temporaryFolder } from './servers/launch.ts';

/*
 * Starts one server over many cells, which are schemas of one database: `node bench/many-cells.ts --cells 500`. Prints
 * when the server listens and when all of its cells are available, the CPU time until then, its memory and connections,
 * and its CPU time while the cells are idle and `/metrics` is read every 15 seconds. The first start creates the keys of
 * each audit log, the second one finds them.
 */

const { values } = parseArgs({
  options: { cells: { type: 'string', default: '500' }, profile: { type: 'string' } },
});
const count = Number(values.cells);
const SCRAPE_SECONDS = 15;
const IDLE_SECONDS = 2 * SCRAPE_SECONDS;

interface Started {
  readonly listening: number;
  readonly available: number;
  readonly cpuSeconds: number;
  readonly mostConnections: number;
  readonly megabytes: number;
  readonly connections: number;
  readonly idleCpuPercent: number;
}

await buildBundle();
// Each cell may have two connections while it is idle, one more while it starts, and one more while it is asked.
const postgres = await startPostgres([
  ...['-c', `max_connections=${count * 4 + 100}`, '-c', 'fsync=off'],
  ...['-c', 'max_locks_per_transaction=256'],
]);
const admin = new Client({ connectionString: postgres.urlOf('postgres') });
await admin.connect();
try {
  const directoryUrl = await postgres.create('directory');
  await makeSchemas();
  console.error(`${count} schemas created`);
  const file = join(temporaryFolder(), 'cells.json');
  const cells = Array.from({ length: count }, (_, at) => ({
    name: `cell-${at}`,
    database_url: `${postgres.urlOf('cells')}?options=-c%20search_path%3Dcell_${at}`,
  }));
  writeFileSync(file, JSON.stringify({ directory_url: directoryUrl, cells }));
  const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'), CUSTOS_CELLS_FILE: file };
  console.table({ 'first start': await startOnce(keys), 'second start': await startOnce(keys) });
} finally {
  await admin.end();
  await postgres.stop();
}

/** Migrates the schemas, each with one text for all migrations. */
async function makeSchemas(): Promise<void> {
  const url = await postgres.create('cells');
  const client = new Client({ connectionString: url });
  await client.connect();
  const text = migrations.flatMap(({ postgres: each }) => splitStatements(each)).join(';\n');
  for (let at = 0; at < count; at += 1) {
    await client.query(`create schema cell_${at}; set search_path = cell_${at}`);
    await client.query(text);
    await client.query(`create table ${MIGRATIONS_TABLE} as select * from public.${MIGRATIONS_TABLE}`);
  }
  await client.query('analyze pg_catalog.pg_class; analyze pg_catalog.pg_attribute');
  await client.end();
}

async function startOnce(keys: Record<string, string>): Promise<Started> {
  const startedMs = performance.now();
  const secondsSince = (): number => (performance.now() - startedMs) / 1_000;
  const { server, adminPort } = await startServer(keys);
  try {
    const listening = secondsSince();
    for (let left = 300; (await unavailableOf(adminPort)) > 0; left -= 1) {
      if (left === 0) throw new Error('some cells did not start');
      await wait(100);
    }
    const available = secondsSince();
    const cpuSeconds = cpuMicrosecondsOf(server.pid) / 1e6;
    await wait(SCRAPE_SECONDS * 1_000);
    const mostConnections = await connectionsNow();
    const before = cpuMicrosecondsOf(server.pid);
    for (let waited = 0; waited < IDLE_SECONDS; waited += SCRAPE_SECONDS) {
      await wait(SCRAPE_SECONDS * 1_000);
      const unavailable = await unavailableOf(adminPort);
      if (unavailable > 0) throw new Error(`${unavailable} cells became unavailable`);
    }
    const idleCpuPercent = (cpuMicrosecondsOf(server.pid) - before) / IDLE_SECONDS / 1e4;
    const measured = { megabytes: residentMegabytesOf(server.pid), connections: await connectionsNow() };
    return { listening, available, cpuSeconds, mostConnections, ...measured, idleCpuPercent };
  } finally {
    await server.stop();
  }
}

async function connectionsNow(): Promise<number> {
  const { rows } = await admin.query<{ count: string }>(
    "select count(*) from pg_stat_activity where datname = 'cells'",
  );
  return Number(rows[0]!.count);
}

async function startServer(
  keys: Record<string, string>,
): Promise<{ readonly server: RunningServer; readonly adminPort: number }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${port}`;
  const server = await launch({
    args: [
      '--max-semi-space-size=8',
      ...(values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`]),
      ...[programs.bundle, 'serve'],
    ],
    env: {
      ...keys,
      ...{ CUSTOS_HOST: '127.0.0.1', CUSTOS_PORT: String(port), CUSTOS_ADMIN_PORT: String(adminPort) },
      ...{ CUSTOS_TRUST_PROXY: '127.0.0.1', CUSTOS_PUBLIC_URLS: origin, CUSTOS_LOG_LEVEL: 'error' },
    },
    ready: async () => {
      const isUp = await fetch(origin).then(
        () => true,
        () => false,
      );
      return isUp ? { origin, appId: '', appSecret: '' } : undefined;
    },
  });
  return { server, adminPort };
}

async function unavailableOf(adminPort: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  return [...text.matchAll(/^custos_cell_unavailable\{.*\} 1$/gm)].length;
}
