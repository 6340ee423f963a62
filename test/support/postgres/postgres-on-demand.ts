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
    /** Answers each GET with the URL of a PostgreSQL database of the asker's own, migrated and empty. */
    databaseDesk: string;
  }
}

const template = 'custos_template';

/**
 * A vitest global setup: a desk at which test files ask for databases. PostgreSQL itself (from npm, a real server) is
 * started by the first who asks, so a run that needs none does not pay for it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  keepExitCode();
  let postgres: Promise<RunningPostgres> | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const desk = createServer((_request, response) => {
    postgres ??= startPostgres();
    // One after the other: a template cannot be copied while it is being copied.
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
  /** A copy of the migrated template, by its URL. */
  clone(): Promise<string>;
  stop(): Promise<void>;
}

/**
 * `embedded-postgres`, once it is imported, ends the process with code 0 when the event loop has run dry, whatever tests
 * have failed. What vitest has decided goes first.
 */
function keepExitCode(): void {
  process.prependListener('beforeExit', () => {
    if (process.exitCode !== undefined && process.exitCode !== 0) process.exit(process.exitCode);
  });
}

async function startPostgres(): Promise<RunningPostgres> {
  const { urlOf, stop } = await startEmbeddedPostgres([
    // What is lost with the power is made again by the next run.
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
