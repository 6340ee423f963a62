/** The PostgreSQL table of migrations that have run. */
export const MIGRATIONS_TABLE = 'schema_migrations';
