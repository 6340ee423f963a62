import { expiringDeliveries, expiringEvents } from '../domain/access/webhooks/webhook-deliveries.ts';
import { partitionedRecords } from '../domain/base/audit/audit-log.ts';
import { dropOldest, extendTable } from '../domain/base/partitions/table-partitions.ts';
import { expiringUses } from '../domain/wallets/wallet-uses/find-uses.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

export const KEEP_PARTITIONS = 'keep-partitions';

const EVERY_MS = 60_000;
/** CHOICE: while this process changes nothing, it leaves the partitions to the processes that do. */
const IDLE_MS = 5 * 60_000;

/** Deliveries come before events, because an event is needed while it has deliveries. */
const expiring = [expiringDeliveries, expiringEvents, expiringUses];

/** On PostgreSQL, adds partitions to the tables that only grow, and drops the partitions whose rows have expired. */
export function keepPartitions({ services, inUnit }: JobContext): Job {
  return {
    name: KEEP_PARTITIONS,
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    isUpkeep: true,
    async run() {
      const nowMs = services.clock.now();
      let dropped = 0;
      for (const table of [partitionedRecords, ...expiring]) await extendTable(inUnit, table);
      for (const table of expiring) {
        if (await dropOldest(inUnit, table, nowMs)) dropped += 1;
      }
      if (dropped > 0) services.log.debug({ dropped }, 'dropped expired partitions');
      return dropped > 0;
    },
  };
}
