import { setTimeout as pause } from 'node:timers/promises';
import type { MoveState, SeenMove } from '../../domain/base/processes/server-processes.ts';
import type { Heartbeat, MovesWatch } from '../../jobs/heartbeat.ts';
import type { JobRunner } from '../../jobs/runner.ts';
import type { Log } from '../../ports/runtime.ts';
import { cellUnavailable, type MovesOfCell } from '../../server/cells.ts';
import type { OpenUnit } from '../../server/unit-of-work.ts';
import { runsDuringMoves } from '../jobs.ts';

/*
 * How apps leave a cell (`src/admin/move-app.ts`). The heartbeat of each process brings the moves of the cell. When an
 * app is about to leave, the process pauses the jobs of the cell, which may take as long as a webhook. Then it refuses
 * new requests for the app, waits for those in progress, and stores in its heartbeat that it has drained the app. The
 * rows of the app are taken only while all processes say so.
 *
 * A process that stood still may not know that an app has left. So it confirms with a heartbeat that it is up to date
 * before and after it works for an app, and before it commits. While heartbeats are stored in time, nothing waits.
 */

/** CHOICE: how long a process waits for the next sign of a move before it serves the app again. */
const PATIENCE_MS = 30_000;
/** CHOICE: how long a request waits for the heartbeat that shows whether its app is still in the cell. */
const CONFIRM_MS = 3_000;
const RETRY_MS = 1_000;

interface Draining extends Pick<SeenMove, 'appId' | 'moveId' | 'number'> {
  untilMs: number;
  state: MoveState;
  /** Resolves when the state has changed, or no sign of the move has come for too long. */
  readonly ended: PromiseWithResolvers<void>;
}

interface Parts {
  readonly alive: Pick<Heartbeat, 'beat' | 'confirm' | 'isCertain'>;
  readonly jobs: Pick<JobRunner, 'whileResting'>;
  /** Stores what waits to be stored after requests. */
  flush(): Promise<void>;
}

/** The apps that leave a cell, or have left it. */
export interface Departures extends MovesOfCell {
  readonly watch: MovesWatch;
  /** Sets what exists only after the watch. Before that, no request runs. */
  connect(parts: Parts): void;
  /** Lets the jobs end, which rest during a move. Call it once no request runs any more. */
  stop(): void;
  /** Returns whether the rows of an app have been taken out of this cell. An app that only leaves still has its rows. */
  hasLeft(appId: string): boolean;
  /** Returns the same units of work. They commit only what is certainly still in this cell. */
  guard(openUnit: OpenUnit): OpenUnit;
}

export function watchDepartures({ log, cell }: { readonly log: Log; readonly cell: string }): Departures {
  const leaving = new Set<string>();
  /** The apps among those whose rows have been taken. */
  const taken = new Set<string>();
  const inProgress = new Map<string, number>();
  const idle = new Map<string, () => void>();
  let parts: Parts | undefined;
  let draining: Draining | undefined;
  /** The move that begins when the draining for another one has ended. */
  let next: SeenMove | undefined;
  let known = 0;
  let drained = 0;
  /** Increases whenever an app begins to leave, and when its rows have been taken. */
  let departures = 0;
  let isStopped = false;

  function note(moves: readonly SeenMove[]): void {
    for (const move of moves) {
      const { number, state, appId, moveId } = move;
      known = number;
      if (state === 'draining') {
        // A process that starts has not served the app yet, and must not begin.
        if (parts === undefined) refuse(appId);
        if (draining === undefined) begin(move);
        else if (draining.moveId === moveId) draining.untilMs = performance.now() + PATIENCE_MS;
        else {
          // A heartbeat brings only the last of several changes. The earlier move was aborted in between.
          if (draining.appId === appId) end(draining, 'aborted');
          next = move;
        }
        continue;
      }
      if (state === 'arrived' || state === 'aborted') {
        leaving.delete(appId);
        taken.delete(appId);
      } else {
        refuse(appId);
        // A unit of work that was opened while the app was leaving may not commit either once the rows are gone.
        if (!taken.has(appId)) departures += 1;
        taken.add(appId);
      }
      if (next?.appId === appId) next = undefined;
      if (draining?.appId === appId) end(draining, state);
    }
  }

  function end(current: Draining, state: MoveState): void {
    current.state = state;
    current.ended.resolve();
  }

  function refuse(appId: string): void {
    if (!leaving.has(appId)) departures += 1;
    leaving.add(appId);
  }

  function begin({ appId, moveId, number }: SeenMove): void {
    const ended = Promise.withResolvers<void>();
    const untilMs = performance.now() + PATIENCE_MS;
    const current: Draining = { appId, moveId, number, untilMs, state: 'draining', ended };
    draining = current;
    drain(current)
      .catch((err: unknown) => log.error({ err, cell, app: appId }, 'failed to drain an app that is moved'))
      .finally(() => {
        draining = undefined;
        const following = next;
        next = undefined;
        if (following !== undefined) begin(following);
      });
  }

  async function drain(current: Draining): Promise<void> {
    const { appId, number, ended } = current;
    const timer = setInterval(() => {
      if (performance.now() >= current.untilMs) ended.resolve();
    }, 100).unref();
    try {
      // The start of the cell has not ended yet.
      while (parts === undefined && !isStopped) await pause(RETRY_MS);
      if (parts === undefined) return;
      const { alive, jobs, flush } = parts;
      await jobs.whileResting(async () => {
        if (performance.now() >= current.untilMs) return;
        log.info({ cell, app: appId }, 'an app is moved to another cell: its requests are refused');
        refuse(appId);
        const isOver = ended.promise.then(() => 'over' as const);
        if ((await Promise.race([becameIdle(appId), isOver])) === 'over') return;
        await flush();
        drained = number;
        await alive.beat().catch(() => undefined);
        await ended.promise;
        // A process that ends stays drained.
        if (!isStopped) await undrain(alive);
      }, runsDuringMoves);
    } finally {
      clearInterval(timer);
      // The last heartbeat may have brought the news that the rows were taken.
      if (current.state === 'draining' && !isStopped) {
        leaving.delete(appId);
        log.warn({ cell, app: appId }, 'the move of an app has stopped: the app is served again');
      }
    }
  }

  /** The jobs may continue only when no move relies on this process any more. */
  async function undrain(alive: Parts['alive']): Promise<void> {
    drained = 0;
    for (let isStored = false; !isStored && !isStopped; ) {
      isStored = await alive.beat().then(
        () => true,
        () => false,
      );
      if (!isStored && !isStopped) await pause(RETRY_MS);
    }
  }

  function becameIdle(appId: string): Promise<'idle'> {
    if (!inProgress.has(appId)) return Promise.resolve('idle');
    return new Promise((resolve) => idle.set(appId, () => resolve('idle')));
  }

  function enter(appId: string): void {
    inProgress.set(appId, (inProgress.get(appId) ?? 0) + 1);
  }

  function leave(appId: string): void {
    const count = inProgress.get(appId)! - 1;
    if (count > 0) inProgress.set(appId, count);
    else {
      inProgress.delete(appId);
      idle.get(appId)?.();
      idle.delete(appId);
    }
  }

  /** Makes sure that this process is up to date. Returns whether it was not. */
  async function confirm(): Promise<boolean> {
    if (parts === undefined || parts.alive.isCertain()) return false;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error('no heartbeat')), CONFIRM_MS).unref();
    await Promise.race([parts.alive.confirm(), late.promise])
      .catch(() => {
        throw cellUnavailable('the database of this app is unavailable');
      })
      .finally(() => clearTimeout(timer));
    return true;
  }

  const requireHere = (appId: string): void => {
    if (leaving.has(appId)) throw cellUnavailable('this app is being moved to another cell');
  };

  return {
    watch: {
      get known() {
        return known;
      },
      get drained() {
        return drained;
      },
      note,
    },
    connect(given) {
      parts = given;
    },
    stop() {
      isStopped = true;
      draining?.ended.resolve();
    },
    async isLeaving(appId) {
      await confirm();
      return leaving.has(appId);
    },
    async during(appId, work) {
      await confirm();
      requireHere(appId);
      enter(appId);
      try {
        return await work();
      } finally {
        leave(appId);
        // If this process stood still, the rows may have left during the work. Its result then counts for nothing.
        if (await confirm()) requireHere(appId);
      }
    },
    hasLeft: (appId) => taken.has(appId),
    guard: (openUnit) => async (write) => {
      const unit = await openUnit(write);
      if (!write) return unit;
      const before = departures;
      return {
        ...unit,
        async commit(last) {
          if ((await confirm()) && departures !== before)
            throw cellUnavailable('an app of this cell is being moved to another cell');
          await unit.commit(last);
        },
      };
    },
  };
}
