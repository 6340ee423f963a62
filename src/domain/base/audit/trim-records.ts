import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { dropPartition, type PartitionedTable, partitionsOf } from '../../../storage/schema/partitions.ts';
import type { Tables } from '../../tables.ts';

// HOT: handles every record. Tiles, checkpoints and keys stay, so what was trimmed can still be proved from an export.

/** The records are dropped by a command only, once they are exported. */
export const partitionedRecords: PartitionedTable = {
  table: 'audit_records',
  key: 'leaf_index',
  time: 'recorded_at_ms',
};

const DELETED_AT_ONCE = 10_000;

/**
 * The index of the first record of the log that is not older than `beforeMs`, or the number of all records. A search
 * by halves: times increase with the index, but for the moment in which transactions end in another order.
 *
 * @param size how many records the log has.
 */
export async function firstRecordSince(
  em: SqlEntityManager,
  beforeMs: number,
  size: number,
): Promise<number> {
  let [begin, end] = [await firstKept(em, size), size];
  while (begin < end) {
    const middle = Math.floor((begin + end) / 2);
    const row = await em
      .getKysely<Tables>()
      .selectFrom('audit_records')
      .select('recorded_at_ms')
      .where('leaf_index', '=', middle)
      .executeTakeFirstOrThrow();
    if (row.recorded_at_ms < beforeMs) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/** The index of the first record that was not trimmed; `size` if all were. */
async function firstKept(em: SqlEntityManager, size: number): Promise<number> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('audit_records')
    .select('leaf_index')
    .orderBy('leaf_index')
    .limit(1)
    .executeTakeFirst();
  return row?.leaf_index ?? size;
}

/** Drops the oldest partition if all of its records are below an index. Result: whether there was one. */
export async function dropRecordsBelow(em: SqlEntityManager, below: number): Promise<boolean> {
  const [oldest] = await partitionsOf(em, partitionedRecords.table);
  if (oldest === undefined || oldest.to > below) return false;
  return dropPartition(em, oldest, sql<boolean>`false`);
}

/** Deletes some of the records below an index; returns how many. */
export async function deleteRecordsBelow(em: SqlEntityManager, below: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const oldest = database
    .selectFrom('audit_records')
    .select('leaf_index')
    .where('leaf_index', '<', below)
    .orderBy('leaf_index')
    .limit(DELETED_AT_ONCE);
  const { numDeletedRows } = await database
    .deleteFrom('audit_records')
    .where('leaf_index', 'in', oldest)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
