import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { entities } from '../../../src/domain/tables.ts';
import { migrate } from '../../../src/storage/migrate.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { startEmbeddedPostgres } from './embedded-postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Responds to each GET with the URL of a new PostgreSQL database, migrated and empty. */
    databaseDesk: string;
  }
}

const template = 'custos_template';

/**
 * A vitest global setup: an HTTP server that gives databases to test files. PostgreSQL itself (from npm, a real
 * server) starts with the first request, so runs that need none do not pay for it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  keepExitCode();
  let postgres: Promise<RunningPostgres> | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const desk = createServer((_request, response) => {
    postgres ??= startPostgres();
    // One after the other, because a template cannot be copied concurrently.
    turn = turn
      .then(() => postgres)
      .then((running) => running?.clone())
      .then(
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
  /** Copies the migrated template and returns the URL. */
  clone(): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Once imported, `embedded-postgres` ends the process with code 0 when the event loop is empty, even if tests have
 * failed. This keeps the exit code of vitest.
 */
function keepExitCode(): void {
  process.prependListener('beforeExit', () => {
    if (process.exitCode !== undefined && process.exitCode !== 0) process.exit(process.exitCode);
  });
}

async function startPostgres(): Promise<RunningPostgres> {
  const { urlOf, stop } = await startEmbeddedPostgres([
    // Data that a power loss destroys is created again by the next run.
    ...['-c', 'fsync=off', '-c', 'full_page_writes=off', '-c', 'synchronous_commit=off'],
    ...['-c', 'max_connections=200'],
  ]);
  const admin = new Client({ connectionString: urlOf('postgres') });
  admin.on('error', () => undefined);
  await admin.connect();
  await admin.query(`create database ${template}`);
  const database = await openDatabase(entities, { kind: 'postgres', url: urlOf(template), poolSize: 2 });
  await migrate(database.orm);
  await database.close();
  let clones = 0;
  return {
    async clone() {
      clones += 1;
      const name = `custos_test_${clones}`;
      await admin.query(`create database ${name} template ${template}`);
      return urlOf(name);
    },
    async stop() {
      await admin.end();
      await stop();
    },
  };
}

function listenLocally(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
