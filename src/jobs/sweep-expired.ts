import { dropStaleRecords } from '../domain/aggregations/running-totals.ts';
import { dropExpiredAnswers } from '../domain/idempotency/answer-once.ts';
import { dropExpiredImports } from '../domain/wallets/begin-import.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 60_000;

/** Drops what no request can need any more: kept answers, begun imports and what has left every window. */
export function sweepExpired({ services, inUnit }: JobContext): Job {
  return {
    name: 'sweep-expired',
    everyMs: EVERY_MS,
    async run() {
      const nowMs = services.clock.now();
      let dropped = 0;
      for (const drop of [dropExpiredAnswers, dropExpiredImports, dropStaleRecords]) {
        dropped += await inUnit((em) => drop(em, nowMs));
      }
      if (dropped > 0) services.log.debug({ dropped }, 'swept what had expired');
      return false;
    },
  };
}
