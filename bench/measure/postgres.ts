import { Client } from 'pg';
import { entities } from '../../src/domain/tables.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { startEmbeddedPostgres } from '../../test/support/postgres/embedded-postgres.ts';

/** A PostgreSQL server for this run. */
export interface RunningPostgres {
  /** Creates a database with the schema of this version and returns its URL. */
  create(name: string): Promise<string>;
  urlOf(database: string): string;
  stop(): Promise<void>;
}

/** Starts PostgreSQL with its default configuration: every commit is on disk before it is acknowledged. */
export async function startPostgres(
  flags: readonly string[] = [],
  onLog?: (lines: string) => void,
): Promise<RunningPostgres> {
  const { urlOf, stop } = await startEmbeddedPostgres(['-c', 'max_wal_size=4GB', ...flags], undefined, onLog);
  return {
    urlOf,
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
    stop,
  };
}

/** Does `work` with a PostgreSQL server, and stops it. */
export async function withPostgres<Result>(
  report: (progress: string) => void,
  work: (postgres: RunningPostgres) => Promise<Result>,
  ...options: Parameters<typeof startPostgres>
): Promise<Result> {
  report('starting PostgreSQL');
  const postgres = await startPostgres(...options);
  try {
    return await work(postgres);
  } finally {
    await postgres.stop();
  }
}
