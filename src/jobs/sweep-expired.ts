import { dropStaleRecords } from '../domain/access/aggregations/aggregation.ts';
import { dropOldDeliveries } from '../domain/access/webhooks/webhook-deliveries.ts';
import { dropOldCheckpoints } from '../domain/base/audit/audit-tree.ts';
import { dropExpiredAnswers } from '../domain/base/idempotency/idempotency-keys.ts';
import { dropExpiredSignatures } from '../domain/base/replay-protection/single-use-signatures.ts';
import { dropExpiredOauth } from '../domain/wallets/oauth/device-codes.ts';
import { dropExpiredUses, USES_AT_ONCE } from '../domain/wallets/wallet-uses/find-uses.ts';
import { dropExpiredImports } from '../domain/wallets/wallets/import-wallet.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

export const SWEEP_EXPIRED = 'sweep-expired';

const EVERY_MS = 60_000;
/** CHOICE: while nothing changes and nothing has expired, expired rows may stay for five minutes. */
const IDLE_MS = 5 * 60_000;

/**
 * CHOICE: stored responses and amounts of running totals are kept this much longer than they are valid. A request keeps
 * its time of arrival while it waits for a chain, and the clocks of processes differ. Without this margin, the response
 * to its first attempt could already be deleted, and the request would be executed again.
 */
const KEPT_LONGER_MS = 60 * 60_000;

/** The number of rows that one statement deletes: few enough for the time limit of a statement, even on a slow disk. */
const ROWS_AT_ONCE = 5_000;

/** Delete rows that requests in progress may still need. */
const lateDrops = [dropExpiredAnswers, dropStaleRecords];
const drops = [dropExpiredSignatures, dropExpiredImports, dropOldDeliveries, dropOldCheckpoints];

/**
 * Creates the job that deletes expired rows: stored responses of idempotency keys, used signatures, unfinished imports,
 * amounts outside of every aggregation window, old webhook deliveries, old records of wallet uses, old checkpoints of
 * the audit log, and codes, tokens and grants of devices.
 */
export function sweepExpired({ services, inUnit }: JobContext): Job {
  let dropped = 0;
  return {
    name: SWEEP_EXPIRED,
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    isIdle: () => dropped === 0,
    isUpkeep: true,
    async run() {
      const nowMs = services.clock.now();
      dropped = 0;
      let hasMore = false;
      const count = (rows: number): void => {
        dropped += rows;
        hasMore ||= rows >= ROWS_AT_ONCE;
      };
      for (const drop of drops) count(await inUnit((em) => drop(em, nowMs, ROWS_AT_ONCE)));
      for (const drop of lateDrops) {
        count(await inUnit((em) => drop(em, nowMs - KEPT_LONGER_MS, ROWS_AT_ONCE)));
      }
      dropped += await inUnit((em) => dropExpiredOauth(em, { nowMs, machineMs: services.machine.now() }));
      const uses = await inUnit((em) => dropExpiredUses(em, nowMs));
      dropped += uses;
      if (dropped > 0) services.log.debug({ dropped }, 'deleted expired rows');
      return hasMore || uses === USES_AT_ONCE;
    },
  };
}
