import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { entities } from '../../../src/domain/tables.ts';
import { migrate } from '../../../src/storage/migrate.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { distributeSchema, makeSchema, schemaOf } from '../../../src/storage/schema/cell-schema.ts';
import { folderInMemory } from '../../temporary-files.ts';
import { startEmbeddedPostgres } from './embedded-postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * The URL of the server that lends databases. POST returns the URL of a new PostgreSQL database, migrated and
     * empty. DELETE returns the databases in its body, one per line.
     */
    databaseDesk: string;
  }
}

const template = 'custos_template';

/**
 * The coordinator of a cluster of Citus. With `TEST_ON_CITUS=1`, tests get distributed schemas of it instead of
 * databases, so that those for PostgreSQL run on a cell of a cluster (docs/figures/citus.md).
 */
const citus = process.env.TEST_ON_CITUS === '1' ? process.env.TEST_CITUS_URL : undefined;

/**
 * A vitest global setup: an HTTP server that lends databases to test files. PostgreSQL itself (from npm, a real
 * server) starts with the first request, so runs that need no database do not start it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  keepExitCode();
  let postgres: Promise<RunningPostgres> | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const desk = createServer((request, response) => {
    postgres ??= citus === undefined ? startPostgres() : onCitus(citus);
    const running = postgres;
    const answer = async (): Promise<string | undefined> => {
      const { clone, takeBack } = await running;
      if (request.method === 'POST') return clone();
      await takeBack((await text(request)).split('\n'));
    };
    // Requests run one after the other, because a template cannot be copied concurrently.
    turn = turn.then(answer).then(
      (url) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const port = await listenLocally(desk);
  project.provide('databaseDesk', `http://127.0.0.1:${port}`);
  return async () => {
    desk.close();
    await (await postgres?.catch(() => undefined))?.stop();
  };
}

interface RunningPostgres {
  /** Makes a migrated database without rows and returns the URL. */
  clone(): Promise<string>;
  /** Drops databases, given by URL, as soon as they have no connections. */
  takeBack(urls: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Keeps the exit code of vitest. Once imported, `embedded-postgres` ends the process with code 0 when the event loop
 * is empty, even if tests have failed.
 */
function keepExitCode(): void {
  process.prependListener('beforeExit', () => {
    if (process.exitCode !== undefined && process.exitCode !== 0) process.exit(process.exitCode);
  });
}

async function startPostgres(): Promise<RunningPostgres> {
  const flags = [
    // After a power failure, the next run creates the data again.
    ...['-c', 'fsync=off', '-c', 'full_page_writes=off', '-c', 'synchronous_commit=off'],
    ...['-c', 'max_connections=200'],
    // Autovacuum would visit every database again and again.
    ...['-c', 'autovacuum=off'],
  ];
  const { urlOf, stop } = await startEmbeddedPostgres(flags, folderInMemory());
  const admin = new Client({ connectionString: urlOf('postgres') });
  admin.on('error', () => undefined);
  await admin.connect();
  await admin.query(`create database ${template}`);
  const database = await openDatabase(entities, { kind: 'postgres', url: urlOf(template), poolSize: 2 });
  await migrate(database.orm);
  await database.close();
  let clones = 0;
  let returned: string[] = [];
  return {
    async clone() {
      clones += 1;
      const name = `custos_test_${clones}`;
      // The default strategy also writes all pages to the log, which takes at least twice as long.
      await admin.query(`create database ${name} template ${template} strategy file_copy`);
      return urlOf(name);
    },
    async takeBack(urls) {
      returned.push(...urls.map((url) => new URL(url).pathname.slice(1)));
      const unused = await admin.query<{ name: string }>(
        `select name from unnest($1::text[]) as name
         where not exists (select from pg_stat_activity where datname = name)`,
        [returned],
      );
      for (const { name } of unused.rows) {
        await admin.query(`drop database ${name}`);
        returned = returned.filter((other) => other !== name);
      }
    },
    async stop() {
      await admin.end();
      await stop();
    },
  };
}

async function onCitus(coordinator: string): Promise<RunningPostgres> {
  const admin = new Client({ connectionString: coordinator });
  await admin.connect();
  let clones = 0;
  return {
    async clone() {
      clones += 1;
      const url = `${coordinator}?options=-c%20search_path%3Dtest_${process.pid}_${clones}`;
      await makeSchema(url);
      const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 2, timeouts: 'none' });
      await migrate(database.orm);
      await database.close();
      await distributeSchema(url);
      return url;
    },
    async takeBack(urls) {
      for (const url of urls) await admin.query(`drop schema ${schemaOf(url)} cascade`);
    },
    stop: () => admin.end(),
  };
}

function listenLocally(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
