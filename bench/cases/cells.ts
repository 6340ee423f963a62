import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { type RunningPostgres, withPostgres } from '../measure/postgres.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { cpuOf, type Entry, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult, type Table } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchServe, makeApp, programs, type ServeEnvironment } from '../servers/custos.ts';
import { type Address, runToEnd, temporaryFolder } from '../servers/launch.ts';

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
    const { measured } = await measureLoad(bench);
    const goals = requestNames.flatMap((request) =>
      SIZES.slice(1).map((size) => {
        const ratio = cpuOf(measured, nameOf(size), request) / cpuOf(measured, nameOf(1), request);
        return atMost('-', `${request}: ${nameOf(size)} to one`, ratio, MOST);
      }),
    );
    goals.push(atMost('-', 'statements of an idle cell', idle.perSecond, MOST_IDLE_STATEMENTS, '/s'));
    return roundsResult(measured, (request) => `${request}, PostgreSQL`, goals, [idle.table]);
  },
};

function nameOf(size: number): string {
  return size === 1 ? 'one cell, without a cells file' : `${size} cells`;
}

/** Sends the same requests to servers with 1, 2 and 4 cells, to the app of each cell in turn. */
function measureLoad(bench: Bench) {
  return withPostgres(
    bench.report,
    (postgres) =>
      measureServers(
        bench,
        SIZES.map((size): Entry => {
          let apps: readonly App[];
          return {
            name: nameOf(size),
            async start() {
              const made = await makeCells(postgres, `load${size}`, size);
              apps = made.apps;
              return launchServe(made.environment, apps[0]!);
            },
            async requestsTo(server) {
              const lists: Awaited<ReturnType<typeof walletRequests>>[] = [];
              for (const app of apps) lists.push(await walletRequests({ ...server, ...app }));
              return Object.fromEntries(
                requestNames.map((request) => [request, inTurn(lists.map((list) => list[request]))]),
              );
            },
          };
        }),
        CONNECTIONS,
      ),
    ['-c', 'max_connections=300'],
  );
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
function measureIdle(bench: Bench): Promise<{ readonly perSecond: number; readonly table: Table }> {
  const [, , most = 4] = SIZES;
  let statements = 0;
  const count = async (postgres: RunningPostgres) => {
    const { environment, apps } = await makeCells(postgres, 'idle', most);
    const server = await launchServe(environment, apps[0]!);
    try {
      bench.report('waiting for the jobs');
      await wait(SETTLE_MS);
      const before = statements;
      bench.report('counting the statements of idle cells');
      await wait(IDLE_SECONDS * 1_000);
      const perSecond = (statements - before) / IDLE_SECONDS / most;
      const columns = ['statements/s of each', 'resident MB'];
      const rows = [[perSecond, residentMegabytesOf(server.pid)]];
      return { perSecond, table: { title: `A server with ${most} idle cells`, columns, rows } };
    } finally {
      await server.stop();
    }
  };
  // `begin` and `commit` are counted too.
  return withPostgres(
    bench.report,
    count,
    ['-c', 'log_statement=all', '-c', 'log_line_prefix=%d '],
    (lines) => {
      statements += [...lines.matchAll(/^idle_\d+ LOG: {2}(?:statement|execute)/gm)].length;
    },
  );
}
