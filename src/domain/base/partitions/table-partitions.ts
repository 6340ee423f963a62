import type { SqlEntityManager } from '@mikro-orm/sql';
import { isLockTimeout } from '../../../storage/database-errors.ts';
import { tryLockName } from '../../../storage/locks.ts';
import {
  dropExpiredPartition,
  type ExpiringTable,
  extendPartitions,
  type PartitionedTable,
} from '../../../storage/schema/partitions.ts';

type InUnit = <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>;

/** Adds the next partition of a table if rows are written to the newest one; on SQLite nothing. */
export async function extendTable(inUnit: InUnit, table: PartitionedTable): Promise<void> {
  await attempt(inUnit, (em) => extendPartitions(em, table));
}

/** Drops the oldest partition of a table if its rows have expired. Result: whether it did. */
export function dropOldest(inUnit: InUnit, table: ExpiringTable, nowMs: number): Promise<boolean> {
  return attempt(inUnit, (em) => dropExpiredPartition(em, table, nowMs));
}

/** In a transaction of its own, because it locks the table; by one process at a time. */
function attempt(inUnit: InUnit, work: (em: SqlEntityManager) => Promise<boolean>): Promise<boolean> {
  return inUnit(async (em) => (await tryLockName(em, 'partitions', 'partitions')) && work(em)).catch(
    (error: unknown) => {
      // Queries were using the table. The next run tries again.
      if (isLockTimeout(error)) return false;
      throw error;
    },
  );
}
