/** The PostgreSQL table of migrations that have run. */
export const MIGRATIONS_TABLE = 'schema_migrations';
/** Written by rate limits only, so it has no entity. */
export const RATE_LEVELS_TABLE = 'rate_levels';
