import { dropStaleRecords } from '../domain/access/aggregations/running-totals.ts';
import { dropOldDeliveries } from '../domain/access/webhooks/webhook-deliveries.ts';
import { dropExpiredAnswers } from '../domain/base/idempotency/answer-once.ts';
import { dropExpiredSignatures } from '../domain/base/used-signatures/accept-once.ts';
import { dropExpiredOauth } from '../domain/wallets/oauth/drop-expired.ts';
import { dropExpiredUses, USES_AT_ONCE } from '../domain/wallets/wallet-uses/find-uses.ts';
import { dropExpiredImports } from '../domain/wallets/wallets/begin-import.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 60_000;

const drops = [
  dropExpiredAnswers,
  dropExpiredSignatures,
  dropExpiredImports,
  dropStaleRecords,
  dropOldDeliveries,
];

/**
 * Deletes expired rows: stored responses of idempotency keys, used signatures, unfinished imports, amounts outside
 * every aggregation window, old webhook deliveries, old records of wallet uses, and codes, tokens and grants of
 * devices.
 */
export function sweepExpired({ services, inUnit }: JobContext): Job {
  return {
    name: 'sweep-expired',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = services.clock.now();
      let dropped = 0;
      for (const drop of drops) {
        dropped += await inUnit((em) => drop(em, nowMs));
      }
      dropped += await inUnit((em) => dropExpiredOauth(em, { nowMs, machineMs: services.machine.now() }));
      const uses = await inUnit((em) => dropExpiredUses(em, nowMs));
      dropped += uses;
      if (dropped > 0) services.log.debug({ dropped }, 'swept what had expired');
      return uses === USES_AT_ONCE;
    },
  };
}
