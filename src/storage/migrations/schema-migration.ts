/** A step from one version of the schema to the next, in the SQL of each database. */
export interface SchemaMigration {
  /** A number and the change, like the name of its file: `0002-add-cards`. */
  readonly name: string;
  readonly postgres: string;
  readonly sqlite: string;
}
