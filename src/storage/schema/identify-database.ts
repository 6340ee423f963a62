import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { MIGRATIONS_TABLE } from '../migrations/schema-migration.ts';
import type { Orm } from '../open-database.ts';
import { findOwner } from './citus.ts';
import { leastKnownBy } from './migration-statements.ts';

/** Values that change when a database is restored, copied or promoted. */
interface IdentifiedDatabase {
  /**
   * The cluster, the database and a table in it. For a schema that Citus has distributed, also a space, the number of
   * the node that has its rows, `=`, and the cluster of that node.
   */
  readonly cluster: string;
  /**
   * The timeline of the cluster. For a schema that Citus has distributed, the sum of the timelines of the coordinator
   * and of the node with the rows, so it grows when either is promoted.
   */
  readonly timeline: number;
  /** Whether the cluster was recovered to a point in time. PostgreSQL keeps this in its settings. */
  readonly hasTarget: boolean;
  /**
   * A string that changes with each start of the database server, for example after a copy of the disk was put back.
   */
  readonly startedAt: string;
}

/**
 * Identifies a PostgreSQL database. Loading a dump creates a new table, a different cluster has a different identifier,
 * and a recovery or a promotion starts a new timeline. A copy of the disk changes none of the three; only `startedAt`
 * shows it.
 *
 * NOTE: uses the timeline of the current log, because `pg_control_checkpoint` still has the old one for some time after
 * a promotion.
 */
export async function identifyDatabase(em: SqlEntityManager): Promise<IdentifiedDatabase> {
  const { rows } = await sql<{
    cluster: string;
    timeline: number;
    has_target: boolean;
    started_at: string;
    has_citus: boolean;
  }>`
    select (select system_identifier from pg_control_system()) || '/' ||
        (select oid from pg_database where datname = current_database()) || '/' ||
        'database_identity'::regclass::oid as cluster,
      ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int as timeline,
      exists (select 1 from pg_settings where setting <> '' and name in
        ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time', 'recovery_target_xid')
      ) as has_target,
      pg_postmaster_start_time()::text as started_at,
      exists (select 1 from pg_extension where extname = 'citus') as has_citus
  `.execute(em.getKysely());
  const [{ cluster, timeline, has_target: hasTarget, started_at: startedAt, has_citus: hasCitus }] = rows as [
    (typeof rows)[number],
  ];
  const owner = hasCitus ? await findOwner((text) => em.execute(text)) : undefined;
  if (owner === undefined) return { cluster, timeline, hasTarget, startedAt };
  return {
    cluster: `${cluster} ${owner.group}=${owner.system}`,
    timeline: timeline + owner.timeline,
    hasTarget: hasTarget || owner.has_target,
    startedAt: `${startedAt} ${owner.started_at}`,
  };
}

export type AskDatabase = <Row>(sql: string) => Promise<readonly Row[]>;

/**
 * Returns why this version cannot use a PostgreSQL database; undefined if it can. Reasons are missing migrations,
 * migrations of a newer version that removed something that this version uses, and tables that differ from the
 * migrations.
 */
export async function findSchemaFault(orm: Orm, ask: AskDatabase): Promise<string | undefined> {
  const { migrations } = await import('../migrations/migrations.ts');
  const known = migrations.map(({ name }) => name);
  const run = await runMigrations(ask);
  const missing = known.filter((name) => !run.includes(name));
  if (missing.length > 0) {
    return `the database lacks ${missing.length} migration(s) of this version; run \`custos migrate\` first`;
  }
  // Migrations that only add to the schema do not affect this version.
  const unknown = run.filter((name) => !known.includes(name) && (leastKnownBy(name) ?? 0) > known.length);
  if (unknown.length > 0) {
    return `a newer version has removed from the database what this version uses (\`${unknown.join('`, `')}\`); run that version`;
  }
  const columns = await missingColumns(orm, ask);
  if (columns.length === 0) return undefined;
  const listed = columns.slice(0, 5).join('`, `');
  return `the database lacks columns that its migrations made: \`${listed}\`; restore them from a backup`;
}

async function runMigrations(ask: AskDatabase): Promise<readonly string[]> {
  const [{ made } = { made: false }] = await ask<{ made: boolean }>(
    `select to_regclass('${MIGRATIONS_TABLE}') is not null as made`,
  );
  if (!made) return [];
  return (await ask<{ name: string }>(`select name from ${MIGRATIONS_TABLE} order by id`)).map(
    ({ name }) => name,
  );
}

/**
 * Returns the columns of entities that the database lacks, as `table.column`.
 *
 * NOTE: this finds each table by its name, because `information_schema` reads the tables of all schemas, of which a
 * database with many cells has thousands.
 */
async function missingColumns(orm: Orm, ask: AskDatabase): Promise<string[]> {
  const expected = [...orm.getMetadata().getAll().values()];
  const tables = expected.map(({ tableName }) => `'${tableName}'`).join(', ');
  const rows = await ask<{ name: string; columns: string }>(`
    select name, string_agg(attname, ',') as columns
    from unnest(array[${tables}]) as name
    join pg_attribute on attrelid = to_regclass(quote_ident(current_schema()) || '.' || quote_ident(name))
    where attnum > 0 and not attisdropped
    group by name`);
  const present = new Map(rows.map(({ name, columns }) => [name, new Set(columns.split(','))]));
  return expected
    .flatMap(({ tableName, props }) =>
      props.flatMap(({ fieldNames = [] }) =>
        fieldNames
          .filter((column) => present.get(tableName)?.has(column) !== true)
          .map((column) => `${tableName}.${column}`),
      ),
    )
    .sort();
}
