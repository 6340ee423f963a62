import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Pool } from 'pg';
import { expect } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { startProduction, type TestProduction } from '../monitoring/production.ts';
import { runCommand, temporaryFolder } from '../run-custos.ts';
import { freshPostgres } from './borrow-database.ts';

/**
 * The coordinator of a cluster of Citus, with the rights of a superuser, such as
 * `TEST_CITUS_URL=postgresql://postgres@127.0.0.1:19700/custos`. The cluster has at least two workers, which this machine
 * can reach. docs/cells.md shows how to make one. Tests that need it are skipped without it, and their names say so.
 */
export const citusUrl = process.env.TEST_CITUS_URL;

export type CellName = 'one' | 'two';

/** A worker of the cluster. */
export interface Worker {
  readonly id: number;
  readonly group: number;
  readonly url: string;
}

interface CallOptions {
  /** Default: the first server. */
  readonly from?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the URL of a schema. */
export function inSchema(url: string, schema: string): string {
  const named = new URL(url);
  named.searchParams.set('options', `-c search_path=${schema}`);
  return named.href;
}

/** Two cells, `one` and `two`, on two workers of a cluster, with an app in each. */
export async function openCitusCells(coordinator: string) {
  const path = join(temporaryFolder(), 'cells.json');
  const env = { CUSTOS_CELLS_FILE: path, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
  const suffix = randomBytes(4).toString('hex');
  const schemas = { one: `one_${suffix}`, two: `two_${suffix}` } as const;
  // It connects again after a test has stopped the coordinator.
  const admin = new Pool({ connectionString: coordinator, max: 1 });
  admin.on('error', () => undefined);
  const ask = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
    (await admin.query<Row>(sql, values)).rows;

  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args, { env });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return stdout;
  }
  const nodes = await ask<{ nodeid: number; groupid: number; nodename: string; nodeport: number }>(
    'select nodeid, groupid, nodename, nodeport from pg_dist_node where groupid > 0 and isactive order by nodeid',
  );
  const workers = nodes.map(({ nodeid, groupid, nodename, nodeport }): Worker => {
    const url = new URL(coordinator);
    [url.hostname, url.port] = [nodename, String(nodeport)];
    return { id: nodeid, group: groupid, url: url.href };
  });
  const ownerOf = async (cell: CellName): Promise<Worker> => {
    const [row] = await ask<{ groupid: number }>(
      `select distinct groupid from pg_dist_placement join pg_dist_shard using (shardid)
       join pg_class on pg_class.oid = logicalrelid where relnamespace = $1::regnamespace`,
      schemas[cell],
    );
    return workers.find(({ group }) => group === row!.groupid)!;
  };
  const move = (cell: CellName, { id }: Worker) =>
    ask('select citus_schema_move($1, $2::int)', schemas[cell], id);
  const otherThan = ({ group }: Worker): Worker => workers.find((worker) => worker.group !== group)!;

  const directory = await freshPostgres();
  for (const cell of ['one', 'two'] as const)
    await run(
      ...['cells', 'add', cell, '--distribute', '--directory-url', directory],
      ...['--database-url', inSchema(coordinator, schemas[cell])],
    );
  const [first, second] = [await ownerOf('one'), await ownerOf('two')];
  if (first.group === second.group) await move('two', otherThan(first));
  const create = async (cell: CellName): Promise<{ readonly id: string; readonly secret: string }> =>
    JSON.parse(await run('apps', 'create', '--name', cell, '--cell', cell, '--json'));
  const apps = { one: await create('one'), two: await create('two') };

  /** What the server has logged as errors, for the message of a test that fails. */
  const errors: string[] = [];
  const log: Log = {
    ...silentLog,
    error(fields, message) {
      const { err } = fields as { readonly err?: NodeJS.ErrnoException };
      errors.push(`${message}: ${err?.code} ${err}`);
    },
  };
  // The machine of the tests may be busy: requests are not refused because the event loop is late.
  const serve = (): Promise<TestProduction> =>
    startProduction({ ...env, CUSTOS_MAX_DELAY_MS: '3000', CUSTOS_RATE_LIMIT: '0' }, log);
  let server = await serve();

  async function call(
    cell: CellName,
    method: string,
    target: string,
    body?: object,
    { from = server.baseUrl, headers = {} }: CallOptions = {},
  ) {
    const { id, secret } = apps[cell];
    const startedMs = performance.now();
    const response = await fetch(`${from}${target}`, {
      method,
      headers: {
        ...server.proxied,
        'service-app-id': id,
        authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
        'content-type': 'application/json',
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: (await response.json()) as { readonly id?: string },
      retryAfter: response.headers.get('retry-after'),
      ms: performance.now() - startedMs,
    };
  }

  return {
    ...{ env, schemas, workers, ask, run, ownerOf, otherThan, move, serve, call },
    server: () => server,
    errors: (): readonly string[] => errors,
    createWallet: (cell: CellName) => call(cell, 'POST', '/v1/wallets', { chain_type: 'ethereum' }),
    walletsOf: async (cell: CellName): Promise<ReadonlySet<string>> =>
      new Set((await ask<{ id: string }>(`select id from "${schemas[cell]}".wallets`)).map(({ id }) => id)),
    /** Stops the server, does some work, and starts another one. */
    async restart(between: () => Promise<unknown> = async () => undefined): Promise<void> {
      await server.close();
      await between();
      server = await serve();
    },
    async close(): Promise<void> {
      await server.close();
      for (const schema of Object.values(schemas)) await ask(`drop schema if exists "${schema}" cascade`);
      await admin.end();
    },
  };
}

export type CitusCells = Awaited<ReturnType<typeof openCitusCells>>;
