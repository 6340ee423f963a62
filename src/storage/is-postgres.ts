import { type Kysely, PostgresAdapter } from 'kysely';

/** Whether this is PostgreSQL rather than SQLite. For this folder alone: nobody else asks. */
export function isPostgres<Tables>(database: Kysely<Tables>): boolean {
  return database.getExecutor().adapter instanceof PostgresAdapter;
}
