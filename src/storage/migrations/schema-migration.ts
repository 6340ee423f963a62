/** A step from one version of the schema to the next, in the SQL of each database. */
export interface SchemaMigration {
  /**
   * A number and the change, like the name of its file: `0002-add-cards`. The suffix `-contract-0021` means that it
   * removes something that versions with migration 21 no longer use.
   */
  readonly name: string;
  readonly postgres: string;
  readonly sqlite: string;
}

/** The PostgreSQL table of migrations that have run. */
export const MIGRATIONS_TABLE = 'schema_migrations';
/** The table of rate limits. It has no entity, because nothing else uses it. */
export const RATE_LEVELS_TABLE = 'rate_levels';
