import { type Kysely, PostgresAdapter } from 'kysely';

/** Whether this is PostgreSQL rather than SQLite. For use within this folder only. */
export function isPostgres<Tables>(database: Kysely<Tables>): boolean {
  return database.getExecutor().adapter instanceof PostgresAdapter;
}
