import { existsSync } from 'node:fs';
import { databaseOf } from '../adapters/sandbox-folder.ts';
import type { DatabaseConfig } from '../config/config.ts';
import { pendingMigrations } from '../storage/migrate.ts';
import { migrations } from '../storage/migrations/migrations.ts';
import type { Orm } from '../storage/open-database.ts';
import { leastKnownBy, readStatements } from '../storage/schema/migration-statements.ts';
import { withDatabase } from './administration.ts';

interface PlannedStatement {
  readonly sql: string;
  readonly table: string;
  /** PostgreSQL's estimate of the number of rows; 0 for a new table, and for a table that was never analyzed. */
  readonly rows: number;
  /** The size of the table with its indexes. */
  readonly bytes: number;
  /** Which statements of running servers wait until the migration ends; null for a new table. */
  readonly waits: string | null;
}

export interface PlannedMigration {
  readonly name: string;
  /** For a migration that removes something: the number of the migration that a server must have to keep working. */
  readonly removes_since: number | null;
  readonly statements: readonly PlannedStatement[];
}

/** Describes the effects of the pending migrations. */
export function planMigrations(config: DatabaseConfig): Promise<PlannedMigration[]> {
  return withDatabase(config, async ({ orm }) => {
    const pending = new Set(await pendingMigrations(orm));
    const sizes = await readSizes(orm);
    return migrations
      .filter(({ name }) => pending.has(name))
      .map(({ name, postgres }) => ({
        name,
        removes_since: leastKnownBy(name) ?? null,
        statements: readStatements(postgres).map(({ text, table, source, lock }) => ({
          ...{ sql: text, table, rows: 0, bytes: 0, waits: lock ?? null },
          ...(source === undefined ? {} : sizes.get(source)),
        })),
      }));
  });
}

async function readSizes(orm: Orm): Promise<ReadonlyMap<string, { rows: number; bytes: number }>> {
  const tables = await orm.em.fork().execute<{ name: string; rows: number; bytes: number }[]>(
    // For a partitioned table, the estimates of its partitions are added.
    `select whole.relname as name, sum(greatest(part.reltuples, 0))::bigint as rows,
       sum(pg_total_relation_size(part.oid))::bigint as bytes
     from pg_class whole
     join lateral (
       select whole.oid as oid, case whole.relkind when 'r' then whole.reltuples else 0 end as reltuples union all
       select child.oid, child.reltuples from pg_inherits join pg_class child on child.oid = inhrelid
       where inhparent = whole.oid and whole.relkind = 'p'
     ) part on true
     where whole.relkind in ('r', 'p') and whole.relnamespace = (select oid from pg_namespace where nspname = current_schema())
     group by whole.relname`,
  );
  return new Map(tables.map(({ name, rows, bytes }) => [name, { rows: Number(rows), bytes: Number(bytes) }]));
}

/** The schema of a sandbox's database and the newest schema of this program, as numbers of migrations. */
export interface SchemaState {
  readonly version: number;
  readonly newest: number;
}

/** Reads the schema of the database in a sandbox's folder, without changing it. Returns undefined if there is none. */
export async function readSchemaState(folder: string): Promise<SchemaState | undefined> {
  const file = databaseOf(folder);
  if (!existsSync(file)) return undefined;
  const { readSchemaVersion } = await import('../storage/open-database.ts');
  return readSchemaVersion(file);
}
