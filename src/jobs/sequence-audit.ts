import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  SEQUENCED_AT_ONCE,
  type SeenLog,
  sequenceRecords,
  signCheckpoint,
} from '../domain/base/audit/audit-tree.ts';
import type { WriteFreeze } from '../ports/audit.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

export const SEQUENCE_AUDIT = 'sequence-audit';

/** With this interval, a record is in the log and covered by a signed checkpoint within a second. */
const EVERY_MS = 500;

/** Creates the job that places the records of the audit log into its Merkle tree and signs the newest checkpoint. */
export function sequenceAudit({
  services,
  inUnit,
  openReader,
  freeze,
}: JobContext & {
  /** Opens a reader outside of any transaction. */
  readonly openReader: () => Promise<SqlEntityManager>;
  /** While changes are refused, nothing is signed, because the log may be a different one. */
  readonly freeze?: WriteFreeze | undefined;
}): Job {
  let seen: SeenLog | undefined;
  let restoredAtMs: number | undefined;
  return {
    name: SEQUENCE_AUDIT,
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    isUpkeep: true,
    async forget() {
      seen = undefined;
    },
    async run() {
      const nowMs = services.clock.now();
      const placed = await inUnit((em) => sequenceRecords(em, nowMs));
      if (placed === SEQUENCED_AT_ONCE) return true;
      if (freeze?.reason() !== undefined) {
        seen = undefined;
        return false;
      }
      // While the job was idle, a restore may have been noticed and released.
      const lastRestoredAtMs = freeze?.restoredAtMs();
      if (lastRestoredAtMs !== restoredAtMs) seen = undefined;
      restoredAtMs = lastRestoredAtMs;
      seen = await signCheckpoint({ keyStore: services.keyStore, em: await openReader(), inUnit }, seen);
      return false;
    },
  };
}
