import type { SqlEntityManager } from '@mikro-orm/sql';
import { countRecords } from '../domain/base/audit/count-records.ts';
import { lastRecordOf, type WrittenRecord } from '../domain/base/audit/write-record.ts';
import {
  type DatabaseIdentity,
  findIdentity,
  findRestore,
  lockRestores,
  noteRestore,
  type RestoreCause,
  storeIdentity,
} from '../domain/base/restores/restores.ts';
import type { ChangeHold } from '../ports/restores/change-hold.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

/*
 * A database that was restored does not know what happened after the moment it was restored to: payments that a chain
 * has, requests that were answered, webhooks that were sent. A server that goes on would do them again. So a process
 * that notices a restore stores it, and every process holds its changes until an operator has released them.
 *
 * What is noticed: another cluster or a table that was created again (a dump), another timeline (a recovery to a point in
 * time, a promoted replica), and changes that this process has acknowledged and that the database does not have.
 *
 * A promoted replica has another timeline too, but may have lost nothing. A process that runs through the failover can
 * tell: commits are in the log in their order, so if the database has the last ones that this process acknowledged, it
 * has all before them. A process that starts afterwards cannot tell, unless a running one has judged before.
 *
 * NOTE: a copy of the disk, put back, has the identity of the original. A running process notices that changes are
 * missing; one that starts does not, so the procedure ends with `custos restored mark`.
 */

const EVERY_MS = 1_000;
/** While it is uncertain which database answers. */
const AGAIN_MS = 100;
/** How long a request waits for certainty, and how often it looks. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 20;
/** How many of the last acknowledged changes are remembered. More than are committed at once, which is out of order. */
const REMEMBERED = 500;

/** CHOICE: a promotion that no running process can judge holds changes, unless the setting says that replicas lose none. */
export type AfterPromotion = 'hold' | 'trust';

export interface RestoreWatch extends Job {
  /** Judges the database before the first request. */
  open(): Promise<void>;
  readonly hold: ChangeHold;
  /** Call after each commit that a caller learns about. */
  acknowledge(em: SqlEntityManager): void;
  /** Call when a connection to the database broke: another database may answer next. */
  doubt(): void;
}

interface Seen {
  readonly actual: IdentifiedDatabase;
  readonly cause: RestoreCause | undefined;
  readonly isHeld: boolean;
}

interface IdentifiedDatabase extends DatabaseIdentity {
  /** Whether it was recovered to a point in time. */
  readonly hasTarget: boolean;
}

interface WatchOptions extends JobContext {
  identify(em: SqlEntityManager): Promise<IdentifiedDatabase>;
  readonly afterPromotion: AfterPromotion;
}

const UNCERTAIN = 'the connection to the database broke; the request is safe to repeat';
const HELD =
  'the database was restored from a backup: changes are held until an operator has checked what is in doubt and released them';

/** @param options its units should have a connection of their own. */
export function watchRestores({ services, inUnit, identify, afterPromotion }: WatchOptions): RestoreWatch {
  const { clock, ids, log } = services;
  let known: DatabaseIdentity | undefined;
  let isHeld = false;
  let doubts = 0;
  let settledDoubts = 0;
  let remembered: WrittenRecord[] = [];
  let wakeUp: () => void = () => undefined;

  async function causeOf(
    em: SqlEntityManager,
    { stored, actual }: { stored: DatabaseIdentity; actual: IdentifiedDatabase },
  ): Promise<RestoreCause | undefined> {
    const before = known ?? stored;
    if (before.cluster !== actual.cluster) return 'copied';
    if ((await countRecords(em, remembered)) < remembered.length) return 'lost_changes';
    if (before.timeline === actual.timeline) return undefined;
    const isTrusted = afterPromotion === 'trust' && !actual.hasTarget;
    return known === undefined && !isTrusted ? 'recovered' : undefined;
  }

  /** Reads whether changes are held, and judges the database if it may be another one than before. */
  async function look(): Promise<void> {
    const doubtsBefore = doubts;
    const seen = await inUnit(async (em) => {
      const actual = await identify(em);
      const isSame = known?.cluster === actual.cluster && known.timeline === actual.timeline;
      const cause = isSame && doubts === settledDoubts ? undefined : await judge(em, actual);
      const restore = await findRestore(em);
      return { actual, cause, isHeld: restore !== undefined && restore.releasedAtMs === null };
    });
    report(seen);
    known = seen.actual;
    isHeld = seen.isHeld;
    settledDoubts = doubtsBefore;
  }

  async function judge(em: SqlEntityManager, actual: IdentifiedDatabase): Promise<RestoreCause | undefined> {
    await lockRestores(em);
    const stored = await findIdentity(em);
    const cause = stored === undefined ? undefined : await causeOf(em, { stored, actual });
    if (cause !== undefined) await noteRestore({ em, ids, nowMs: clock.now() }, cause);
    if (stored?.cluster !== actual.cluster || stored.timeline !== actual.timeline)
      await storeIdentity(em, actual);
    return cause;
  }

  function report({ actual, cause, isHeld: isNowHeld }: Seen): void {
    if (cause !== undefined) {
      log.error({ cause }, 'the database was restored; see `custos restored report`');
      // Missed once is enough: after the release they are missing still.
      remembered = [];
    } else if (known !== undefined && known.timeline !== actual.timeline) {
      log.warn(
        { timeline: actual.timeline },
        'a replica of the database was promoted; nothing acknowledged is lost',
      );
    }
    if (isHeld !== isNowHeld) log.warn({}, isNowHeld ? 'changes are held' : 'changes are released');
  }

  function reason(): string | undefined {
    if (isHeld) return HELD;
    return doubts === settledDoubts ? undefined : UNCERTAIN;
  }

  return {
    name: 'watch-restores',
    everyMs: EVERY_MS,
    async run(again) {
      wakeUp = again;
      try {
        await look();
      } catch (error) {
        if (doubts !== settledDoubts) setTimeout(again, AGAIN_MS).unref();
        throw error;
      }
      return doubts !== settledDoubts;
    },
    open: look,
    hold: {
      reason,
      async settled() {
        for (let waitedMs = 0; reason() === UNCERTAIN && waitedMs < PATIENCE_MS; waitedMs += PAUSE_MS) {
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
        return reason();
      },
    },
    acknowledge(em) {
      const record = lastRecordOf(em);
      if (record === undefined) return;
      remembered.push(record);
      if (remembered.length >= 2 * REMEMBERED) remembered = remembered.slice(-REMEMBERED);
    },
    doubt() {
      doubts += 1;
      wakeUp();
    },
  };
}
