import { releaseEndpointsOf } from '../domain/access/webhooks/fan-out-events.ts';
import {
  type BeatResponse,
  type Claimant,
  countBeat,
  type MovesOfProcess,
  registerProcess,
  removeProcess,
  type SeenMove,
} from '../domain/base/processes/server-processes.ts';
import { releaseExecutionsOf } from '../domain/money/automation-runs/executions.ts';
import { releaseCustomersOf } from '../domain/money/fiat-customers/customer-snapshot.ts';
import { releaseTransactionsOf } from '../domain/money/transactions/claim-transactions.ts';
import { releaseChainsOf } from '../domain/money/transactions/record-funds.ts';
import { releaseStepsOf } from '../domain/money/wallet-actions/due-steps.ts';
import { settleInterruptedIntents } from '../domain/requests/intents/execute-intent.ts';
import type { Services, UnitContext } from '../ports/operation-context.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

/*
 * Every process counts its heartbeats in the database, and watches the heartbeats of the others. If the count of a
 * process stands still for MISSES rounds of another process, the process is considered dead. In one transaction, its
 * row is deleted, and everything that it had claimed becomes due.
 *
 * Rounds are counted instead of time, because the clocks of machines differ, and because after a failure of the
 * database every process gets the same number of rounds to recover.
 *
 * A process may be considered dead although it runs, because its event loop was blocked or it alone lost the database.
 * Such a process does no harm: its results are refused, because the next check or the owner of the row has changed.
 * Before it sends something that must not be sent twice, it confirms that it is not considered dead.
 */

const EVERY_MS = 1_000;
/** Timers and clocks differ by some milliseconds. */
const TIMER_SLACK_MS = 100;
/**
 * CHOICE: after how many rounds without a heartbeat a process counts as dead. With rounds of one second, other
 * processes take over its work after five to six seconds.
 */
const MISSES = 5;
/** How long after a heartbeat this process certainly counts as alive. Others wait for at least `MISSES * EVERY_MS`. */
const CERTAIN_MS = 3_000;

/** The heartbeat of this process, which the other processes watch. */
export interface Heartbeat extends Job {
  /**
   * Resolves when this process certainly counts as alive. Rejects when the database cannot be reached.
   *
   * @returns how many times other processes have taken over its work so far. If the number has increased, everything
   * that it had claimed before is lost.
   */
  confirm(): Promise<number>;
  /** Returns whether this process certainly counts as alive, and knows what the others rely on. */
  isCertain(): boolean;
  /** Returns the time at which the last stored heartbeat began, by the clock of the machine. */
  lastBeatMs(): number;
  /** Resolves when a heartbeat is stored that began after the call. */
  beat(): Promise<void>;
  /** Releases everything that this process has claimed, and removes the process from those that the others watch. */
  leave(): Promise<void>;
}

/** The state of another process, as this process last saw it. */
interface Watched {
  readonly beats: number;
  /** The number of rounds in which its heartbeats stood still. */
  readonly misses: number;
}

/** The state of this process in the moves of apps, and its reaction to changes of them. */
export interface MovesWatch extends MovesOfProcess {
  /** Called with news before the heartbeat that has brought them counts as stored. */
  note(moves: readonly SeenMove[]): void;
}

/** A process that takes no part in moves. No app can leave its database while it runs. */
const noPart: MovesWatch = { known: Number.MAX_SAFE_INTEGER, drained: 0, note: () => undefined };

interface HeartbeatOptions extends JobContext {
  /** Default: this process takes no part in moves. */
  readonly moves?: MovesWatch | undefined;
  /** Called after the work of a dead process was released. */
  readonly onTakeOver?: (() => void) | undefined;
}

/** Creates the heartbeat. `inUnit` should use a separate connection, so that heartbeats do not wait for other work. */
export function heartbeat({ services, inUnit, onTakeOver, moves = noPart }: HeartbeatOptions): Heartbeat {
  const { clock, machine, log, processId: owner } = services;
  let watched: ReadonlyMap<string, Watched> = new Map();
  let lastBeatMs = Number.NEGATIVE_INFINITY;
  let lastRoundMs = Number.NEGATIVE_INFINITY;
  let isRegistered = false;
  let losses = 0;
  let beating: Promise<ReadonlyMap<string, number>> | undefined;

  const isCertain = (): boolean => machine.now() - lastBeatMs < CERTAIN_MS;

  async function beat(): Promise<ReadonlyMap<string, number>> {
    // Read before the statement: the process counts as alive from the statement's commit on, which is later.
    const startedMs = machine.now();
    const { known, drained } = moves;
    const counted = await inUnit((em) => countBeat(em, { owner, known, drained }));
    const response = counted ?? (await register());
    if (counted === undefined && isRegistered) {
      losses += 1;
      log.warn({ process: owner }, 'this process was suspended; another process has taken over its work');
    }
    isRegistered = true;
    moves.note(response.moves);
    lastBeatMs = startedMs;
    return response.others;
  }

  function register(): Promise<BeatResponse> {
    const { known } = moves;
    return inUnit((em) => registerProcess(em, { owner, nowMs: clock.now(), known }));
  }

  /** Sends a heartbeat. The first of several concurrent callers sends it for all of them. */
  function beatOnce(): Promise<ReadonlyMap<string, number>> {
    if (beating === undefined) {
      beating = beat();
      const end = (): void => {
        beating = undefined;
      };
      beating.then(end, end);
    }
    return beating;
  }

  async function takeOver(id: string, beats: number): Promise<void> {
    const isDead = await inUnit(async (em, notes) => {
      const wasRemoved = await removeProcess(em, id, beats);
      if (wasRemoved) await releaseClaims(services, { em, notes }, { owner: id, nowMs: clock.now() });
      return wasRemoved;
    });
    if (!isDead) return;
    log.warn({ process: id }, 'another server process has died; its work was released');
    onTakeOver?.();
  }

  return {
    name: 'stay-alive',
    everyMs: EVERY_MS,
    // A process whose heartbeats stop loses its work to other processes. So the job must not pause longer after
    // failures.
    keepsPace: true,
    async run() {
      const others = await beatOnce();
      const nowMs = machine.now();
      // If rounds followed each other too quickly, another process would have no time for a heartbeat in between.
      if (nowMs - lastRoundMs < EVERY_MS - TIMER_SLACK_MS) return false;
      lastRoundMs = nowMs;
      const known = watched;
      watched = new Map(
        [...others].map(([id, beats]) => {
          const before = known.get(id);
          return [id, { beats, misses: before?.beats === beats ? before.misses + 1 : 0 }];
        }),
      );
      for (const [id, { beats, misses }] of watched) if (misses >= MISSES) await takeOver(id, beats);
      return false;
    },
    isCertain,
    async confirm() {
      if (!isCertain()) await beatOnce();
      return losses;
    },
    lastBeatMs: () => lastBeatMs,
    async beat() {
      await beating?.catch(() => undefined);
      await beatOnce();
    },
    leave: () =>
      inUnit(async (em, notes) => {
        await removeProcess(em, owner);
        await releaseClaims(services, { em, notes }, { owner, nowMs: clock.now() });
      }),
  };
}

const releases = [
  releaseEndpointsOf,
  releaseTransactionsOf,
  releaseChainsOf,
  releaseStepsOf,
  releaseExecutionsOf,
  releaseCustomersOf,
];

/** Makes everything due that a process has claimed and will not finish. */
export async function releaseClaims(
  { ids }: Pick<Services, 'ids'>,
  { em, notes }: UnitContext,
  dead: Claimant,
): Promise<void> {
  for (const release of releases) await release(em, dead);
  await settleInterruptedIntents({ ids, em, notes, nowMs: dead.nowMs }, dead.owner);
}
