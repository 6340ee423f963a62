import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  type AcknowledgedChange,
  compareLog,
  continuesLog,
  countLost,
  findPlaced,
  getSignedCheckpoint,
  openSeenLog,
  readLog,
  type SeenLog,
} from '../domain/base/audit/audit-tree.ts';
import {
  type DatabaseIdentity,
  findIdentity,
  findRestore,
  isMoved,
  lockRestores,
  noteRestore,
  type Restore,
  type RestoreCause,
  readRestoreState,
  storeIdentity,
} from '../domain/base/restores/restores.ts';
import type { CheckpointKeeper, KeptCheckpoint, WriteFreeze } from '../ports/audit.ts';
import type { UnitNotes } from '../ports/operation-context.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

/*
 * A restored database lacks everything after the moment to which it was restored: payments that a chain contains,
 * requests that were answered, webhooks that were sent. A server that continued would do them again. Therefore a
 * process that notices a restore stores this fact, and every process refuses changes until an operator releases them.
 *
 * A process notices
 * - another cluster, or a table that was created again (a dump);
 * - another timeline (a recovery to a point in time, or a promoted replica);
 * - lost changes: the record of a change that this process has acknowledged is missing, or the audit log does not
 *   begin with the records that this process has seen.
 *
 * A cluster may move a schema to another of its nodes, which loses nothing.
 *
 * A promoted replica has another timeline too, but may have lost nothing. A process that runs through the failover
 * can tell, because it has the evidence. A process that starts afterwards cannot tell, unless a running process has
 * already decided. Evidence is valid until a process notices the next restore. Changes that are missing by then were
 * held, and an operator has released them.
 *
 * NOTE: when a copy of the disk is put back, it has the identity of the original. A running process notices the
 * missing changes. A process that starts does not, so the procedure ends with `custos restored mark`.
 */

export const WATCH_RESTORES = 'watch-restores';

const EVERY_MS = 1_000;
/**
 * CHOICE: the identity of the database is read in every fifth round while nothing gives a reason to read it. In every
 * round, the log shows whether the database has lost a change that has a place in it. The identity is needed only to
 * judge changes without a place, and a broken connection.
 */
const IDENTIFIED_ROUNDS = 5;
/** The interval of checks while it is uncertain which database responds. */
const RECHECK_MS = 100;
/** How long a request waits for certainty, and how often it checks. */
const MAX_WAIT_MS = 1_000;
const PAUSE_MS = 20;
/** How many acknowledged changes without a known place in the log are kept, at least. */
const REMEMBERED = 1_000;

/**
 * CHOICE: if no running process can tell whether a promotion lost changes, all changes are refused, unless the setting
 * declares that replicas lose none.
 */
export type AfterPromotion = 'hold' | 'trust';

export interface RestoreWatch extends Job {
  /** Checks the database before the first request. */
  open(): Promise<void>;
  readonly freeze: WriteFreeze;
  /** Keeps a change as evidence. Call it after each commit that a caller is told about. */
  acknowledge(notes: UnitNotes): void;
  /**
   * Makes the next request wait for a check. Call it when a connection to the database broke, or when the database
   * lacked a table, because another database, or another content of it, may respond next.
   */
  doubt(): void;
}

interface IdentifiedDatabase extends DatabaseIdentity {
  /** Whether the database was recovered to a point in time. */
  readonly hasTarget: boolean;
  /** A string that changes with each start of the database server. */
  readonly startedAt: string;
}

interface WatchOptions extends JobContext {
  identify(em: SqlEntityManager): Promise<IdentifiedDatabase>;
  readonly afterPromotion: AfterPromotion;
  /** Stores what a process has seen of the log beyond the end of the process. Default: nothing is stored. */
  readonly keeper?: CheckpointKeeper | undefined;
}

/** What a check has found. */
interface Seen {
  readonly actual: IdentifiedDatabase;
  readonly cause: RestoreCause | undefined;
  readonly restore: Restore | undefined;
  readonly log: SeenLog | undefined;
  /** The kept changes that the log contains. */
  readonly placed: ReadonlySet<number>;
  /** The newest signed checkpoint for the keeper, if the log matches it. */
  readonly signed: string | undefined;
}

/** What the database must contain, because this process has seen it since the last restore. */
interface Evidence {
  readonly changes: readonly AcknowledgedChange[];
  readonly log: SeenLog | undefined;
  /** Whether the kept checkpoint was signed by a key other than the log's. The log was then replaced. */
  readonly isReplaced: boolean;
}

const NO_EVIDENCE: Evidence = { changes: [], log: undefined, isReplaced: false };

const UNCERTAIN =
  'the connection to the database broke, or the database lacked tables; the request is safe to repeat';
const HELD =
  'the database was restored from a backup: changes are held until an operator has checked what is in doubt and released them';

/** Creates the watch. `inUnit` should use a separate connection, so that checks do not wait for other work. */
export function watchRestores({
  services,
  inUnit,
  identify,
  afterPromotion,
  keeper,
}: WatchOptions): RestoreWatch {
  const { clock, ids, log } = services;
  let known: IdentifiedDatabase | undefined;
  let lastRestore: Pick<Restore, 'noticedAtMs' | 'releasedAtMs'> | undefined;
  let doubts = 0;
  let settledDoubts = 0;
  let remembered: AcknowledgedChange[] = [];
  let seenLog: SeenLog | undefined;
  let keptNote: string | undefined;
  let isKeeping = true;
  let wakeUp: () => void = () => undefined;
  let rounds = 0;

  /**
   * Reads whether changes are refused. Checks the database if it may no longer be the same one, or may lack something.
   */
  async function check(): Promise<void> {
    const doubtsBefore = doubts;
    // Changes that are acknowledged during the check may be missing in what it reads.
    const changes = [...remembered];
    const kept = known === undefined ? await readKept() : undefined;
    rounds += 1;
    const isQuiet = changes.length === 0 && doubts === settledDoubts && rounds % IDENTIFIED_ROUNDS !== 0;
    const seen = await inUnit(async (em): Promise<Seen> => {
      const actual = isQuiet && known !== undefined ? known : await identify(em);
      // The order matters: a change that has a place now is in the log that is read next.
      const placed = await findPlaced(em, changes, seenLog?.size ?? 0);
      const { restore, log: now } = await readRestoreState(em);
      const evidence = isNewer(restore) ? NO_EVIDENCE : await evidenceOf(em, changes, kept);
      const relation = evidence.log === undefined ? 'continued' : await compareLog(em, evidence.log, now);
      const isWhole = relation !== 'lost' && !evidence.isReplaced && !isRestoreLost(restore);
      const isCertain = isSame(actual) && doubts === settledDoubts && isWhole;
      const cause = isCertain ? undefined : await judge(em, actual, evidence);
      return {
        ...{ actual, cause, placed },
        restore: cause === undefined ? restore : await findRestore(em),
        log: relation === 'pending' && cause === undefined ? evidence.log : now,
        signed: relation === 'continued' && cause === undefined ? await signedOf(em, now) : undefined,
      };
    });
    report(seen);
    forget(seen);
    known = seen.actual;
    lastRestore = seen.restore;
    seenLog = seen.log;
    settledDoubts = doubtsBefore;
    await keep(seen);
  }

  /** Reads what a process on this machine has stored. Without it, this process has only its own observations. */
  async function readKept(): Promise<KeptCheckpoint | undefined> {
    let kept: KeptCheckpoint | undefined;
    try {
      kept = await keeper?.read();
    } catch (err) {
      log.error(
        { err },
        'the stored checkpoint of the audit log cannot be read; the log is not compared with it',
      );
    }
    const noticedAtMs = kept?.restoredAtMs ?? undefined;
    if (noticedAtMs !== undefined) lastRestore = { noticedAtMs, releasedAtMs: noticedAtMs };
    return kept;
  }

  async function evidenceOf(
    em: SqlEntityManager,
    changes: readonly AcknowledgedChange[],
    kept: KeptCheckpoint | undefined,
  ): Promise<Evidence> {
    if (kept === undefined) return { changes, log: seenLog, isReplaced: false };
    const keptLog = await openSeenLog(em, kept.note);
    return { changes, log: keptLog, isReplaced: keptLog === undefined };
  }

  /** Returns the newest signed checkpoint that is not stored yet, if the log matches it. */
  async function signedOf(em: SqlEntityManager, now: SeenLog | undefined): Promise<string | undefined> {
    const note = keeper && (await getSignedCheckpoint(em));
    if (note === undefined || note === keptNote) return undefined;
    const signed = await openSeenLog(em, note);
    return signed !== undefined && (await continuesLog(em, signed, now)) ? note : undefined;
  }

  async function keep({ signed, restore }: Seen): Promise<void> {
    if (keeper === undefined || signed === undefined) return;
    try {
      await keeper.keep({ note: signed, restoredAtMs: restore?.noticedAtMs ?? null });
      keptNote = signed;
      isKeeping = true;
    } catch (err) {
      if (isKeeping) log.error({ err }, 'failed to store the last checkpoint of the audit log');
      isKeeping = false;
    }
  }

  function isSame({ cluster, timeline, startedAt }: IdentifiedDatabase): boolean {
    return known?.cluster === cluster && known.timeline === timeline && known.startedAt === startedAt;
  }

  /**
   * Returns whether another process has noticed a restore that this process has not. The evidence of this process is
   * then from before the restore.
   */
  function isNewer(restore: Restore | undefined): boolean {
    return restore !== undefined && restore.noticedAtMs > (lastRestore?.noticedAtMs ?? -1);
  }

  /** Returns whether the database no longer contains the record of its restore. */
  function isRestoreLost(restore: Restore | undefined): boolean {
    return lastRestore !== undefined && (restore?.noticedAtMs ?? -1) < lastRestore.noticedAtMs;
  }

  async function judge(
    em: SqlEntityManager,
    actual: IdentifiedDatabase,
    evidence: Evidence,
  ): Promise<RestoreCause | undefined> {
    await lockRestores(em);
    const restore = await findRestore(em);
    const stored = await findIdentity(em);
    const cause = await causeOf(em, {
      ...{ before: known ?? stored, actual, restore },
      evidence: isNewer(restore) ? undefined : evidence,
    });
    if (cause !== undefined) await noteRestore({ em, ids, nowMs: clock.now() }, cause);
    if (stored?.cluster !== actual.cluster || stored.timeline !== actual.timeline)
      await storeIdentity(em, actual);
    return cause;
  }

  async function causeOf(
    em: SqlEntityManager,
    {
      before,
      actual,
      restore,
      evidence,
    }: {
      /** The database as the last server identified it. Undefined if no server has used it. */
      readonly before: DatabaseIdentity | undefined;
      readonly actual: IdentifiedDatabase;
      readonly restore: Restore | undefined;
      readonly evidence: Evidence | undefined;
    },
  ): Promise<RestoreCause | undefined> {
    const hasMoved = before !== undefined && isMoved(before, actual);
    if (before !== undefined && before.cluster !== actual.cluster && !hasMoved) return 'copied';
    if (isRestoreLost(restore) || (evidence !== undefined && (await hasLost(em, evidence))))
      return 'lost_changes';
    if (before === undefined || before.timeline === actual.timeline) return undefined;
    // The move explains the other timeline, unless a node was recovered while no server ran.
    if (hasMoved && !actual.hasTarget) return undefined;
    const isTrusted = afterPromotion === 'trust' && !actual.hasTarget;
    return known === undefined && !isTrusted ? 'recovered' : undefined;
  }

  function report({ actual, cause, restore, log: now }: Seen): void {
    if (cause !== undefined) {
      const sizes = { seen_records: seenLog?.size, records: now?.size ?? 0 };
      log.error({ cause, ...sizes }, 'the database was restored; see `custos restored report`');
    } else if (known !== undefined && isMoved(known, actual)) {
      log.info({}, 'the cluster has moved the schema of the database to another node');
    } else if (known !== undefined && known.timeline !== actual.timeline) {
      log.warn(
        { timeline: actual.timeline },
        'a replica of the database was promoted; nothing acknowledged is lost',
      );
    }
    const isNowHeld = isUnreleased(restore);
    if (isUnreleased(lastRestore) !== isNowHeld)
      log.warn({}, isNowHeld ? 'changes are held' : 'changes are released');
  }

  /**
   * Drops the evidence that newer evidence replaces. After a restore, drops all of it, because what is missing then
   * stays missing.
   */
  function forget({ cause, restore, placed }: Seen): void {
    if (cause !== undefined || isNewer(restore)) remembered = [];
    else if (placed.size > 0) remembered = remembered.filter(({ pendingId }) => !placed.has(pendingId));
  }

  function reason(): string | undefined {
    if (isUnreleased(lastRestore)) return HELD;
    return known !== undefined && doubts === settledDoubts ? undefined : UNCERTAIN;
  }

  return {
    name: WATCH_RESTORES,
    everyMs: EVERY_MS,
    // After an outage, changes are refused until this job has checked the database that responds. So the job must not
    // pause longer after failures.
    keepsPace: true,
    async run(again) {
      wakeUp = again;
      try {
        await check();
      } catch (error) {
        if (doubts !== settledDoubts) setTimeout(again, RECHECK_MS).unref();
        throw error;
      }
      return doubts !== settledDoubts;
    },
    open: check,
    freeze: {
      reason,
      async settled() {
        for (let waitedMs = 0; reason() === UNCERTAIN && waitedMs < MAX_WAIT_MS; waitedMs += PAUSE_MS) {
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
        return reason();
      },
      restoredAtMs: () => lastRestore?.noticedAtMs,
    },
    acknowledge({ lastRecord: record }) {
      if (record === undefined) return;
      remembered.push({ ...record, logSize: seenLog?.size ?? 0 });
      if (remembered.length >= 2 * REMEMBERED) remembered = thinned(remembered);
    },
    doubt() {
      const isChecked = doubts !== settledDoubts;
      doubts += 1;
      // While there is a doubt, a check runs or is about to run. Its own failures must not start the next one at once.
      if (!isChecked) wakeUp();
    },
  };
}

async function hasLost(em: SqlEntityManager, { changes, log, isReplaced }: Evidence): Promise<boolean> {
  if (isReplaced) return true;
  if ((await countLost(em, changes)) > 0) return true;
  return log !== undefined && (await compareLog(em, log, await readLog(em))) === 'lost';
}

function isUnreleased(restore: Pick<Restore, 'releasedAtMs'> | undefined): boolean {
  return restore !== undefined && restore.releasedAtMs === null;
}

/**
 * Keeps all of the newest changes, and every second older change. A database loses its latest commits. The newest
 * changes may already be in the database that replaced it, so some changes of each earlier time must stay.
 */
function thinned(changes: readonly AcknowledgedChange[]): AcknowledgedChange[] {
  return changes.filter((_, at) => at % 2 === 0 || at >= changes.length - REMEMBERED);
}
