import { type Kysely, PostgresAdapter } from 'kysely';

/** Whether the database is PostgreSQL, not SQLite. Only for use in this folder. */
export function isPostgres<Tables>(database: Kysely<Tables>): boolean {
  return database.getExecutor().adapter instanceof PostgresAdapter;
}
