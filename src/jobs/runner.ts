import type { Log } from '../ports/runtime.ts';

/** A kind of background work, which runs in batches. */
export interface Job {
  readonly name: string;
  /** The pause after a batch that found nothing more to do, in ms of real time. */
  readonly everyMs: number;
  /**
   * The pause of an idle job, if it is longer than `everyMs`. `wake` and `wakeSoon` end it. Set it only for a job that
   * one of these always wakes in time, so that this pause is no more than a precaution. Without `isIdle`, it is also
   * the pause before the first batch.
   */
  readonly idleMs?: number;
  /** Whether the last batch found nothing that keeps the job busy. Default: always. A busy job pauses for `everyMs`. */
  isIdle?(): boolean;
  /** Whether the job keeps this pause after a failure, because other jobs depend on it. Other jobs pause longer. */
  readonly keepsPace?: boolean;
  /**
   * Whether the job only does maintenance, which never creates work for another job. `settle` therefore runs it once,
   * after the others.
   */
  readonly isUpkeep?: boolean;
  /**
   * Runs one bounded batch in transactions of its own. Several processes may run the same job at the same time, so the
   * job claims the rows that it works on. Returns whether more can be done immediately.
   *
   * @param again runs the job once more. Work that continues after the batch may call it later.
   */
  run(again: () => void): Promise<boolean>;
  /**
   * Waits for work that continues after a batch. Returns whether there was any. Undefined if the job has no such work.
   */
  finish?(): Promise<boolean>;
  /** Finishes the work that continues after a batch, and starts nothing more. */
  stop?(): Promise<void>;
  /** Finishes the work that continues after a batch, and gives back everything that the job has claimed. */
  rest?(): Promise<void>;
  /**
   * Drops everything that it has read from the database, which is about to be emptied. When it resolves, the job writes
   * nothing more.
   */
  forget?(): Promise<void>;
}

export interface JobRunner {
  /** Runs a job immediately, or once more after its current batch. */
  wake(name: string): void;
  /** Runs a job no later than `everyMs` after its last batch, even if it is idle. */
  wakeSoon(name: string): void;
  /**
   * Runs every job except maintenance until none finds more to do. Waits for work that continues after a batch, such
   * as requests to endpoints that do not respond, but at most `patienceMs` of real time.
   */
  act(patienceMs: number): Promise<void>;
  /** Runs every job until none finds more to do. Does not wait for work that continues after a batch. */
  settle(): Promise<void>;
  /** Like `settle`, but also waits for the work that continues after batches. */
  finish(): Promise<void>;
  /**
   * Runs `work` while all jobs are paused. `mustForget` is for work that replaces the database: the jobs first drop
   * everything that they have read from it.
   */
  whilePaused<T>(work: () => Promise<T>, options: { readonly mustForget: boolean }): Promise<T>;
  /** Runs `work` while all jobs are paused, except those named in `except`, and have claimed nothing. */
  whileResting<T>(work: () => Promise<T>, except: ReadonlySet<string>): Promise<T>;
  /** Finishes the current batches and starts no more. */
  stop(): Promise<void>;
}

/** Called after every batch, for metrics. */
export type ObserveJob = (name: string, durationMs: number, hasFailed: boolean) => void;

/** Starts the jobs, each in its own loop, so that a slow job does not delay the others. */
export function startJobs(jobs: readonly Job[], log: Log, observe?: ObserveJob): JobRunner {
  const loops = new Map(jobs.map((job) => [job.name, startLoop(job, log, observe)]));
  const upkeep = jobs.filter(({ isUpkeep }) => isUpkeep === true).map(({ name }) => loops.get(name)!);
  const acting = [...loops.values()].filter((loop) => !upkeep.includes(loop));
  const act = async (patienceMs: number): Promise<void> => {
    const endMs = performance.now() + patienceMs;
    do {
      // One job may create work for another, so the loop ends when every job has found nothing since any job last did
      // something.
      for (let at = 0, idle = 0; idle < acting.length; at = (at + 1) % acting.length) {
        idle = (await acting[at]!.drain()) ? 1 : idle + 1;
      }
    } while (await finishWithin(jobs, endMs - performance.now()));
  };
  const settle = async (patienceMs: number): Promise<void> => {
    await act(patienceMs);
    for (const loop of upkeep) await loop.drain();
  };
  return {
    wake: (name) => loops.get(name)?.wake(),
    wakeSoon: (name) => loops.get(name)?.wakeSoon(),
    act,
    settle: () => settle(0),
    finish: () => settle(Number.POSITIVE_INFINITY),
    whilePaused: (work, { mustForget }) =>
      pausing([...loops.values()], work, async (job) => (mustForget ? job.forget?.() : undefined)),
    whileResting: (work, except) =>
      pausing(
        [...loops].flatMap(([name, loop]) => (except.has(name) ? [] : [loop])),
        work,
        async (job) => job.rest?.(),
      ),
    async stop() {
      await Promise.all([...loops.values()].map((loop) => loop.stop()));
    },
  };
}

/** Runs work while these loops are paused. */
async function pausing<T>(
  loops: readonly ReturnType<typeof startLoop>[],
  work: () => Promise<T>,
  prepare: (job: Job) => Promise<void>,
): Promise<T> {
  const isDone = Promise.withResolvers<void>();
  try {
    await Promise.all(loops.map((loop) => loop.hold(isDone.promise, prepare)));
    return await work();
  } finally {
    isDone.resolve();
  }
}

/** Waits for work that continues after batches. Returns whether there was any, and all of it ended in time. */
async function finishWithin(jobs: readonly Job[], patienceMs: number): Promise<boolean> {
  if (patienceMs <= 0) return false;
  const ended = Promise.all(jobs.map((job) => job.finish?.() ?? false)).then((were) => were.includes(true));
  if (patienceMs === Number.POSITIVE_INFINITY) return ended;
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, patienceMs, false).unref();
  return Promise.race([ended, late.promise]).finally(() => clearTimeout(timer));
}

/** CHOICE: the longest pause of a job that fails repeatedly. The pause doubles with each failure. */
const MAX_PAUSE_MS = 30_000;

function startLoop(job: Job, log: Log, observe: ObserveJob | undefined) {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  // Set when the job is woken during a batch, which may have checked too early.
  let isWoken = false;
  // Set when `wakeSoon` is called during a batch.
  let isExpected = false;
  // Whether the pause is the long one of an idle job.
  let isIdling = false;
  let endedMs = 0;
  let failures = 0;
  // Each batch waits for the previous one, so that in one process a job never runs twice at the same time.
  let last: Promise<unknown> = Promise.resolve();

  const batch = (): Promise<boolean> => {
    const next = last.then(async () => {
      if (isStopped) return false;
      const startedMs = performance.now();
      let hasFailed = false;
      try {
        const hasMore = await job.run(wake);
        failures = 0;
        return hasMore;
      } catch (err) {
        hasFailed = true;
        failures += 1;
        log.error({ err, job: job.name }, 'job failed; will retry');
        return false;
      } finally {
        observe?.(job.name, performance.now() - startedMs, hasFailed);
      }
    });
    last = next;
    return next;
  };
  const rest = (delayMs: number): void => {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(turn, delayMs).unref();
  };
  const turn = (): void => {
    isWoken = false;
    isExpected = false;
    isIdling = false;
    void batch().then((hasMore) => {
      endedMs = performance.now();
      rest(failures > 0 ? pauseMs() : hasMore || isWoken ? 0 : restMs());
    });
  };
  const restMs = (): number => {
    isIdling = job.idleMs !== undefined && !isExpected && (job.isIdle?.() ?? true);
    return isIdling ? job.idleMs! : job.everyMs;
  };
  // A job that every request wakes must not query an unavailable database with every request.
  const pauseMs = (): number =>
    job.keepsPace === true
      ? job.everyMs
      : Math.max(job.everyMs, Math.min(job.everyMs * 2 ** (failures - 1), MAX_PAUSE_MS));
  function wake(): void {
    isWoken = true;
    if (failures >= 2) return;
    // `wakeSoon` must not replace the timer below with a later one.
    isIdling = false;
    rest(0);
  }
  // HOT: called after every commit of a change.
  function wakeSoon(): void {
    isExpected = true;
    if (!isIdling) return;
    isIdling = false;
    rest(Math.max(0, endedMs + job.everyMs - performance.now()));
  }

  // A job that is idle whenever nothing wakes it starts idle. If not, all jobs of all cells would run a second after
  // the start, each on a new connection.
  isIdling = job.idleMs !== undefined && job.isIdle === undefined;
  rest(isIdling ? job.idleMs! : job.everyMs);
  return {
    wake,
    wakeSoon,
    /** Returns whether there was more to do after the first batch. */
    async drain() {
      for (let worked = false; ; worked = true) if (!(await batch())) return worked;
    },
    /** When it resolves, no batch is running, and none starts before `end`. */
    async hold(end: Promise<void>, prepare: (of: Job) => Promise<void>) {
      const begun = last;
      last = begun.then(() => end);
      await begun;
      await prepare(job);
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await last;
      await job.stop?.();
    },
  };
}
