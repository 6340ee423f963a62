/** Where PostgreSQL remembers which migrations it has run. */
export const MIGRATIONS_TABLE = 'schema_migrations';
