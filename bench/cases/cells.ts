import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { type RunningPostgres, startPostgres } from '../measure/postgres.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { type Contestant, leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable, type Table } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchServe, makeApp, programs, type ServeEnvironment } from '../servers/custos.ts';
import { type Address, type RunningServer, runToEnd, temporaryFolder } from '../servers/launch.ts';

const SIZES = [1, 2, 4];
const MOST = 1.05;
const MOST_IDLE_STATEMENTS = 3;
/**
 * The connections for requests of each server, shared equally by its cells. With as many for each cell, a server with
 * four cells would work on four times as many requests at once as one without cells, which costs CPU time by itself.
 */
const CONNECTIONS = 16;
/** How long the jobs of a new server are left alone, and how long its statements are counted afterwards. */
const [SETTLE_MS, IDLE_SECONDS] = [15_000, 30];

const requestNames = ['getWallet', 'createWallet', 'personal_sign'] as const;

/** The cost of several cells in one server: per request, and while nothing happens. */
export const cells: BenchCase = {
  about: 'CPU per request of a server with 1, 2 and 4 cells; statements and memory of idle cells',
  needsPeers: false,
  async run(bench) {
    const idle = await measureIdle(bench);
    const measured = await measureLoad(bench);
    const cpu = (size: number, request: string): number => leastCpu(pick(measured, nameOf(size), request));
    return {
      tables: [
        ...requestNames.map((request) => roundsTable(`${request}, PostgreSQL`, measured, request)),
        idle.table,
        noiseTable(measured),
      ],
      goals: [
        ...requestNames.flatMap((request) =>
          SIZES.slice(1).map((size) =>
            atMost({
              ...{ id: '-', what: `${request}: ${nameOf(size)} to one` },
              ...{ measured: cpu(size, request) / cpu(1, request), limit: MOST },
            }),
          ),
        ),
        atMost({
          ...{ id: '-', what: 'statements of an idle cell' },
          ...{ measured: idle.perSecond, limit: MOST_IDLE_STATEMENTS, unit: '/s' },
        }),
      ],
      busyOthers: busyOthersOf(measured),
    };
  },
};

function nameOf(size: number): string {
  return size === 1 ? 'one cell, without a cells file' : `${size} cells`;
}

/** Sends the same requests to servers with 1, 2 and 4 cells, to the app of each cell in turn. */
async function measureLoad(bench: Bench) {
  bench.report('starting PostgreSQL');
  const postgres = await startPostgres(['-c', 'max_connections=300']);
  const servers: RunningServer[] = [];
  try {
    const contestants: Contestant[] = [];
    for (const size of SIZES) {
      bench.report(`starting ${nameOf(size)}`);
      const { environment, apps } = await makeCells(postgres, `load${size}`, size);
      const server = await launchServe(environment, apps[0]!);
      servers.push(server);
      const lists: Awaited<ReturnType<typeof walletRequests>>[] = [];
      for (const app of apps) lists.push(await walletRequests({ ...server, ...app }));
      const requests = Object.fromEntries(
        requestNames.map((request) => [request, inTurn(lists.map((list) => list[request]))]),
      );
      contestants.push({ name: nameOf(size), server, requests });
    }
    return await measureRounds(contestants, { ...bench, connections: CONNECTIONS });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await postgres.stop();
  }
}

type App = Pick<Address, 'appId' | 'appSecret'>;

/** Makes the databases of a server with an app in each, and a cells file if there are several. */
async function makeCells(
  postgres: RunningPostgres,
  prefix: string,
  size: number,
): Promise<{ readonly environment: ServeEnvironment; readonly apps: readonly App[] }> {
  const keys = {
    CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
    CUSTOS_DATABASE_POOL: String(CONNECTIONS / size),
  };
  const urls: string[] = [];
  for (let at = 0; at < size; at += 1) urls.push(await postgres.create(`${prefix}_${at}`));
  if (size === 1) {
    const environment = { ...keys, DATABASE_URL: urls[0]! };
    return { environment, apps: [await makeApp(environment)] };
  }
  const file = join(temporaryFolder(), 'cells.json');
  const environment = { ...keys, CUSTOS_CELLS_FILE: file };
  const cellNames = urls.map((_, at) => `cell-${at}`);
  const cellsFile = {
    directory_url: await postgres.create(`${prefix}_directory`),
    cells: urls.map((url, at) => ({ name: cellNames[at], database_url: url })),
  };
  writeFileSync(file, JSON.stringify(cellsFile));
  const apps: App[] = [];
  for (const name of cellNames) {
    const args = [programs.bundle, 'apps', 'create', '--name', 'Bench', '--cell', name, '--json'];
    const { id, secret } = JSON.parse(await runToEnd(args, { CUSTOS_CELLS_FILE: file })) as {
      id: string;
      secret: string;
    };
    apps.push({ appId: id, appSecret: secret });
  }
  return { environment, apps };
}

function inTurn(lists: readonly (readonly LoadRequest[])[]): LoadRequest[] {
  const length = Math.max(...lists.map((list) => list.length));
  return Array.from({ length }, (_, at) => lists.map((list) => list[at % list.length]!)).flat();
}

/** Counts the statements that PostgreSQL gets from a server whose four cells have nothing to do. */
async function measureIdle(bench: Bench): Promise<{ readonly perSecond: number; readonly table: Table }> {
  const [, , most = 4] = SIZES;
  bench.report('starting PostgreSQL with a log of all statements');
  let statements = 0;
  // `begin` and `commit` are counted too.
  const postgres = await startPostgres(['-c', 'log_statement=all', '-c', 'log_line_prefix=%d '], (lines) => {
    statements += [...lines.matchAll(/^idle_\d+ LOG: {2}(?:statement|execute)/gm)].length;
  });
  try {
    const { environment, apps } = await makeCells(postgres, 'idle', most);
    const server = await launchServe(environment, apps[0]!);
    try {
      bench.report('waiting for the jobs');
      await wait(SETTLE_MS);
      const before = statements;
      bench.report('counting the statements of idle cells');
      await wait(IDLE_SECONDS * 1_000);
      const perSecond = (statements - before) / IDLE_SECONDS / most;
      return {
        perSecond,
        table: {
          title: `A server with ${most} idle cells`,
          columns: ['statements/s of each', 'resident MB'],
          rows: [[perSecond, residentMegabytesOf(server.pid)]],
        },
      };
    } finally {
      await server.stop();
    }
  } finally {
    await postgres.stop();
  }
}
