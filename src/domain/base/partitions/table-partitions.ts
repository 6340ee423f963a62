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

/** Adds the next partition of a table when rows are written to its newest partition. Does nothing on SQLite. */
export async function extendTable(inUnit: InUnit, table: PartitionedTable): Promise<void> {
  await attempt(inUnit, (em) => extendPartitions(em, table));
}

/** Drops the oldest partition of a table if its rows have expired. Returns whether it dropped one. */
export function dropOldest(inUnit: InUnit, table: ExpiringTable, nowMs: number): Promise<boolean> {
  return attempt(inUnit, (em) => dropExpiredPartition(em, table, nowMs));
}

/** Runs the work in its own transaction, because it locks the table. Only one process does this at a time. */
function attempt(inUnit: InUnit, work: (em: SqlEntityManager) => Promise<boolean>): Promise<boolean> {
  return inUnit(async (em) => (await tryLockName(em, 'partitions', 'partitions')) && work(em)).catch(
    (error: unknown) => {
      // Queries were using the table. The next run will try again.
      if (isLockTimeout(error)) return false;
      throw error;
    },
  );
}
