import type { SqlEntityManager } from '@mikro-orm/sql';
import { type RawBuilder, sql } from 'kysely';
import { isPostgres } from '../sql-functions.ts';

// On PostgreSQL, tables that only grow are partitioned, so that old rows are dropped with their partition instead of
// being deleted. A partition is a range of the key, which increases with every row, rather than of the time. Primary
// keys therefore stay unchanged, a page reads one or two partitions, and clock differences cannot put a row into the
// wrong partition. Each range has about a week of rows.
//
// The default partition takes rows that no range covers, so writing never depends on the job that adds ranges.

/** A table that is partitioned by ranges of its key. */
export interface PartitionedTable {
  readonly table: string;
  /** The name of a column that increases with every row. */
  readonly key: string;
  /** The name of the column with the time of a row, Unix ms. */
  readonly time: string;
}

/** A table whose rows expire. */
export interface ExpiringTable extends PartitionedTable {
  readonly keptMs: number;
  /**
   * Returns an SQL expression that is true if a partition contains rows that are still needed. Rows older than
   * `beforeMs` have expired.
   */
  isNeeded(partition: Partition, beforeMs: number): RawBuilder<boolean>;
}

/** A range of keys: `from` inclusive, null for no bound; `to` exclusive. */
export interface Partition {
  readonly name: string;
  readonly from: number | null;
  readonly to: number;
}

/** A partition gets about as many rows as are written in this time. */
const SPAN_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Returns how long after their expiry rows are deleted individually; 0 on SQLite.
 *
 * CHOICE: expired rows are dropped with their partition, at most a week late. They are deleted individually only if so
 * few rows are written that a partition spans more than a week.
 */
export function graceOf(em: SqlEntityManager): number {
  return isPostgres(em.getKysely()) ? SPAN_MS : 0;
}

/**
 * A range has at least as many keys as the busiest server writes between two runs of the job. The limits are multiples
 * of 256.
 */
const MIN_ROWS = 102_400;
const MAX_ROWS = 51_200_000;

/** How long adding or dropping a partition waits for running queries on the table. Later queries wait behind it. */
const LOCK_TIMEOUT = '250ms';

/** Returns the ranges of a table by increasing key, without the default partition; none on SQLite. */
export async function partitionsOf(em: SqlEntityManager, table: string): Promise<Partition[]> {
  const database = em.getKysely();
  if (!isPostgres(database)) return [];
  const { rows } = await sql<{ name: string; bound: string }>`
    select child.relname as name, pg_get_expr(child.relpartbound, child.oid) as bound
    from pg_inherits join pg_class child on child.oid = inhrelid
    where inhparent = to_regclass(${table})
  `.execute(database);
  return rows
    .flatMap(({ name, bound }) => {
      const [, from, to] = /FROM \((MINVALUE|'\d+')\) TO \('(\d+)'\)/.exec(bound) ?? [];
      if (from === undefined) return [];
      return { name, from: from === 'MINVALUE' ? null : Number(from.slice(1, -1)), to: Number(to) };
    })
    .sort((one, other) => one.to - other.to);
}

/**
 * Adds the next range once rows are written to the newest range.
 * @returns whether a range was added.
 */
export async function extendPartitions(
  em: SqlEntityManager,
  partitioned: PartitionedTable,
): Promise<boolean> {
  const ranges = await partitionsOf(em, partitioned.table);
  const newest = ranges.at(-1);
  if (newest === undefined) return false;
  const { table } = partitioned;
  const last = await rowAtEnd(em, partitioned, { end: 'desc' });
  if (last === undefined || last.key < (newest.from ?? 0)) return false;
  // The newest range may be only minutes old, so measure the rate from the start of the range before it.
  const begin = (ranges.at(-2) ?? newest).from ?? 0;
  const first = await rowAtEnd(em, partitioned, { end: 'asc', from: begin });
  const size =
    first === undefined
      ? MIN_ROWS
      : sizeOf({ rows: last.key - first.key + 1, elapsedMs: last.atMs - first.atMs });
  const database = em.getKysely();
  await waitBriefly(em);
  // Lock the default partition, so that no row is added to it while its keys are compared with the new range.
  const rest = `${table}_default`;
  await sql`lock table ${sql.table(rest)} in access exclusive mode`.execute(database);
  const { rows } = await sql<{ last: string | null }>`
    select max(${sql.ref(partitioned.key)}) as last from ${sql.table(rest)}
  `.execute(database);
  const from = Math.max(newest.to, roundUp(Number(rows[0]?.last ?? -1) + 1));
  const name = `${table}_p${from}`;
  await sql`create table ${sql.table(name)} (like ${sql.table(table)} including all)`.execute(database);
  await sql`
    alter table ${sql.table(table)} attach partition ${sql.table(name)}
    for values from (${sql.lit(from)}) to (${sql.lit(from + size)})
  `.execute(database);
  return true;
}

/**
 * Drops the oldest partition whose rows have all expired.
 * @returns whether there was one.
 */
export async function dropExpiredPartition(
  em: SqlEntityManager,
  expiring: ExpiringTable,
  nowMs: number,
): Promise<boolean> {
  const beforeMs = nowMs - expiring.keptMs;
  const last = await rowAtEnd(em, expiring, { end: 'desc' });
  for (const partition of await partitionsOf(em, expiring.table)) {
    if (last === undefined || partition.to > last.key) return false;
    // Check the newest row first, because the full check reads the whole partition.
    const newest = await rowAtEnd(em, { ...expiring, table: partition.name }, { end: 'desc' });
    if (newest !== undefined && newest.atMs > beforeMs) return false;
    if (await dropPartition(em, partition, expiring.isNeeded(partition, beforeMs))) return true;
  }
  return false;
}

/**
 * Drops a partition, unless one of its rows is still needed.
 * @returns whether it was dropped.
 */
export async function dropPartition(
  em: SqlEntityManager,
  { name }: Partition,
  isNeeded: RawBuilder<boolean>,
): Promise<boolean> {
  const database = em.getKysely();
  await waitBriefly(em);
  await sql`lock table ${sql.table(name)} in access exclusive mode`.execute(database);
  const { rows } = await sql<{ needed: boolean }>`select (${isNeeded}) as needed`.execute(database);
  if (rows[0]?.needed !== false) return false;
  await sql`drop table ${sql.table(name)}`.execute(database);
  return true;
}

interface EndRow {
  readonly key: number;
  readonly atMs: number;
}

async function rowAtEnd(
  em: SqlEntityManager,
  { table, key, time }: PartitionedTable,
  { end, from = 0 }: { readonly end: 'asc' | 'desc'; readonly from?: number },
): Promise<EndRow | undefined> {
  const { rows } = await sql<{ key: string; at_ms: string }>`
    select ${sql.ref(key)} as key, ${sql.ref(time)} as at_ms from ${sql.table(table)}
    where ${sql.ref(key)} >= ${from} order by ${sql.ref(key)} ${sql.raw(end)} limit 1
  `.execute(em.getKysely());
  const [row] = rows;
  return row === undefined ? undefined : { key: Number(row.key), atMs: Number(row.at_ms) };
}

function sizeOf({ rows, elapsedMs }: { readonly rows: number; readonly elapsedMs: number }): number {
  const wanted = elapsedMs <= 0 ? MIN_ROWS : (rows * SPAN_MS) / elapsedMs;
  return roundUp(Math.min(MAX_ROWS, Math.max(MIN_ROWS, wanted)));
}

/** Rounds up to a multiple of 256, because the audit log bundles 256 records. */
function roundUp(count: number): number {
  return Math.ceil(count / 256) * 256;
}

async function waitBriefly(em: SqlEntityManager): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT)}`.execute(em.getKysely());
}
