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

/** Adds the next partition of a table once rows are written to its newest partition. Does nothing on SQLite. */
export async function extendTable(inUnit: InUnit, table: PartitionedTable): Promise<void> {
  await attempt(inUnit, (em) => extendPartitions(em, table));
}

/** Drops the oldest partition of a table if its rows have expired. Returns whether it dropped one. */
export function dropOldest(inUnit: InUnit, table: ExpiringTable, nowMs: number): Promise<boolean> {
  return attempt(inUnit, (em) => dropExpiredPartition(em, table, nowMs));
}

/**
 * Runs the work in its own transaction, because it locks the table. Returns false without running it if another process
 * is changing partitions, and false if the table was in use.
 */
function attempt(inUnit: InUnit, work: (em: SqlEntityManager) => Promise<boolean>): Promise<boolean> {
  return inUnit(async (em) => (await tryLockName(em, 'partitions', 'partitions')) && work(em)).catch(
    (error: unknown) => {
      // Queries were using the table, so the lock timed out. The job tries again at its next run.
      if (isLockTimeout(error)) return false;
      throw error;
    },
  );
}
