import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { startPostgres } from './measure/postgres.ts';
import { cpuMicrosecondsOf, residentMegabytesOf } from './measure/process-usage.ts';
import { buildBundle } from './peers.ts';
import { programs } from './servers/custos.ts';
import { freePort, launch, type RunningServer, temporaryFolder } from './servers/launch.ts';

/*
 * Starts one server over many cells, on one PostgreSQL: `node bench/many-cells.ts --cells 500`. Prints how long the start
 * takes, the memory of the server, its connections, and its CPU time while the cells are idle. The first start creates
 * the keys of each audit log, the second one finds them.
 */

const { values } = parseArgs({
  options: { cells: { type: 'string', default: '100' }, profile: { type: 'string' } },
});
const count = Number(values.cells);
const IDLE_SECONDS = 20;

interface Started {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly megabytes: number;
  readonly idleMegabytes: number;
  readonly connections: number;
  readonly idleCpuPercent: number;
}

await buildBundle();
const postgres = await startPostgres(['-c', `max_connections=${count * 8 + 100}`, '-c', 'fsync=off']);
const admin = new Client({ connectionString: postgres.urlOf('postgres') });
await admin.connect();
try {
  const directoryUrl = await postgres.create('directory');
  await postgres.create('cell_0');
  for (let at = 1; at < count; at += 1) await admin.query(`create database cell_${at} template cell_0`);
  console.error(`${count} databases created`);
  const file = join(temporaryFolder(), 'cells.json');
  const cells = Array.from({ length: count }, (_, at) => ({
    name: `cell-${at}`,
    database_url: postgres.urlOf(`cell_${at}`),
  }));
  writeFileSync(file, JSON.stringify({ directory_url: directoryUrl, cells }));
  const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'), CUSTOS_CELLS_FILE: file };
  console.table({ 'first start': await startOnce(keys), 'second start': await startOnce(keys) });
} finally {
  await admin.end();
  await postgres.stop();
}

async function startOnce(keys: Record<string, string>): Promise<Started> {
  const startedMs = performance.now();
  const { server, adminPort } = await startServer(keys);
  try {
    const seconds = (performance.now() - startedMs) / 1_000;
    const cpuSeconds = cpuMicrosecondsOf(server.pid) / 1e6;
    const megabytes = residentMegabytesOf(server.pid);
    // On a busy machine, the check of a cell can take too long.
    for (let left = 30; (await unavailableOf(adminPort)) > 0; left -= 1) {
      if (left === 0) throw new Error('some cells did not start');
      await wait(1_000);
    }
    // Connections that only the start needed are closed after ten seconds.
    await wait(15_000);
    const before = cpuMicrosecondsOf(server.pid);
    await wait(IDLE_SECONDS * 1_000);
    const idleCpuPercent = (cpuMicrosecondsOf(server.pid) - before) / IDLE_SECONDS / 1e4;
    const { rows } = await admin.query<{ count: string }>(
      "select count(*) from pg_stat_activity where datname like 'cell%'",
    );
    const connections = Number(rows[0]!.count);
    const idleMegabytes = residentMegabytesOf(server.pid);
    return { seconds, cpuSeconds, megabytes, idleMegabytes, connections, idleCpuPercent };
  } finally {
    await server.stop();
  }
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
