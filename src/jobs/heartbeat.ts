import {
  beatsOfOthers,
  countBeat,
  registerProcess,
  removeProcess,
} from '../domain/base/processes/server-processes.ts';
import type { JobContext } from './job-context.ts';
import { releaseClaims } from './release-claims.ts';
import type { Job } from './runner.ts';

/*
 * Every process counts its heartbeats in the database and watches those of the others. If the heartbeats of a process
 * stand still for MISSES rounds of another process, that process counts as dead. Its row is deleted, and everything
 * that it had claimed becomes due, in one transaction.
 *
 * Rounds are counted instead of time, because the clocks of machines differ, and because after a failure of the
 * database every process gets the same number of rounds to recover.
 *
 * A process that counts as dead although it lives (its event loop stood still, or it alone lost the database) does no
 * harm. Its results are refused, because the next check or the owner of the row has changed. Before it sends something
 * that must not be sent twice, it confirms that the others still count it as alive.
 */

const EVERY_MS = 1_000;
/** Timers and clocks do not agree to the millisecond. */
const TIMER_SLACK_MS = 100;
/** CHOICE: with rounds of a second, the work of a process that dies is taken over after five to six seconds. */
const MISSES = 5;
/** How long after a beat this process certainly counts as alive: others wait for at least `MISSES * EVERY_MS`. */
const CERTAIN_MS = 3_000;

/** The life of this process, as the others see it. */
export interface Heartbeat extends Job {
  /**
   * Resolves when the others certainly count this process as alive. Rejects when the database cannot be reached.
   *
   * Result: how often they have taken over its work so far. What was claimed before the last time is lost.
   */
  confirm(): Promise<number>;
  /** Releases what this process has claimed, and removes it from those that the others watch. */
  leave(): Promise<void>;
}

/** The state of another process, as far as this one has seen it. */
interface Watched {
  readonly beats: number;
  /** Rounds in which its beats stood still. */
  readonly misses: number;
}

/** @param context its units should have a connection of their own, so that beats do not wait for the work. */
export function heartbeat({ services, inUnit }: JobContext): Heartbeat {
  const { clock, machine, log, processId: owner } = services;
  let watched: ReadonlyMap<string, Watched> = new Map();
  let lastBeatMs = Number.NEGATIVE_INFINITY;
  let lastRoundMs = Number.NEGATIVE_INFINITY;
  let isRegistered = false;
  let losses = 0;
  let beating: Promise<ReadonlyMap<string, number>> | undefined;

  async function beat(): Promise<ReadonlyMap<string, number>> {
    // Before the statement: this process counts as alive from its commit on, which is later.
    const startedMs = machine.now();
    const read = await inUnit(async (em) => {
      const isKnown = await countBeat(em, owner);
      if (!isKnown) await registerProcess(em, { owner, nowMs: clock.now() });
      return { isKnown, others: await beatsOfOthers(em, owner) };
    });
    if (!read.isKnown && isRegistered) {
      losses += 1;
      log.warn({ process: owner }, 'this process was suspended; another process has taken over its work');
    }
    isRegistered = true;
    lastBeatMs = startedMs;
    return read.others;
  }

  /** The first of several concurrent callers beats for all. */
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
    if (isDead) log.warn({ process: id }, 'another server process has died; its work was released');
  }

  return {
    name: 'stay-alive',
    everyMs: EVERY_MS,
    // A process whose beats stand still loses its work to the others.
    keepsPace: true,
    async run() {
      const others = await beatOnce();
      const nowMs = machine.now();
      // Rounds in quick succession leave no time for a beat.
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
    async confirm() {
      if (machine.now() - lastBeatMs >= CERTAIN_MS) await beatOnce();
      return losses;
    },
    leave: () =>
      inUnit(async (em, notes) => {
        await removeProcess(em, owner);
        await releaseClaims(services, { em, notes }, { owner, nowMs: clock.now() });
      }),
  };
}
