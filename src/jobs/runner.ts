import type { Log } from '../ports/log.ts';

/** Work that is done beside the requests. */
export interface Job {
  readonly name: string;
  /** How long it rests when it found nothing more to do, ms of the machine's time. */
  readonly everyMs: number;
  /**
   * Does one bounded batch, in transactions of its own. Several processes may run the same job at once: it claims
   * what it works on. True when there is more to do at once.
   *
   * @param again has the job run once more, now or when what it left under way leaves something to do.
   */
  run(again: () => void): Promise<boolean>;
  /** For a job that leaves work under way when a batch ends: waits for it, and tells whether there was any. */
  finish?(): Promise<boolean>;
  /** For such a job: finishes what is under way and begins nothing more. */
  stop?(): Promise<void>;
  /**
   * For such a job: drops what it read of the database, which is about to be emptied. When it resolves, nothing that
   * was under way writes any more.
   */
  forget?(): Promise<void>;
}

export interface JobRunner {
  /** Runs a job as soon as it rests; for whoever just left it something to do. */
  wake(name: string): void;
  /**
   * Runs every job until none finds more to do: after the clock was moved, what is due has happened or is under way.
   * Waits for no work that a job left under way, which may be a request to somebody who does not answer.
   */
  settle(): Promise<void>;
  /** Settles, and waits for what is under way, until there is nothing of either. */
  finish(): Promise<void>;
  /** Does `work`, which empties the database, while no job runs and after each has dropped what it had read of it. */
  beginAnew(work: () => Promise<void>): Promise<void>;
  /** Finishes the batches that have begun and begins no other. */
  stop(): Promise<void>;
}

/** Begins to run the jobs, each in a loop of its own so that a slow one delays nobody. */
export function startJobs(jobs: readonly Job[], log: Log): JobRunner {
  const loops = new Map(jobs.map((job) => [job.name, startLoop(job, log)]));
  const drainAll = async (mustFinish: boolean): Promise<void> => {
    // One job may leave another something to do, so the last round is one in which nobody did anything.
    for (let worked = true; worked; ) {
      worked = false;
      for (const loop of loops.values()) worked = (await loop.drain(mustFinish)) || worked;
    }
  };
  return {
    wake: (name) => loops.get(name)?.wake(),
    settle: () => drainAll(false),
    finish: () => drainAll(true),
    async beginAnew(work) {
      const isDone = Promise.withResolvers<void>();
      try {
        await Promise.all([...loops.values()].map((loop) => loop.hold(isDone.promise)));
        await work();
      } finally {
        isDone.resolve();
      }
    },
    async stop() {
      await Promise.all([...loops.values()].map((loop) => loop.stop()));
    },
  };
}

function startLoop(job: Job, log: Log) {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  // Woken while a batch runs: the batch may have looked before there was anything.
  let isWoken = false;
  // Every batch waits for the one before: a job never runs beside itself in one process.
  let last: Promise<unknown> = Promise.resolve();

  const batch = (): Promise<boolean> => {
    const next = last.then(async () => {
      if (isStopped) return false;
      try {
        return await job.run(wake);
      } catch (err) {
        log.error({ err, job: job.name }, 'a job failed; it is tried again');
        return false;
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
    void batch().then((hasMore) => rest(hasMore || isWoken ? 0 : job.everyMs));
  };
  function wake(): void {
    isWoken = true;
    rest(0);
  }

  rest(job.everyMs);
  return {
    wake,
    async drain(mustFinish: boolean) {
      for (let worked = false; ; worked = true) {
        const hasMore = await batch();
        const wasUnderWay = mustFinish && ((await job.finish?.()) ?? false);
        if (!hasMore && !wasUnderWay) return worked;
      }
    },
    /** When it resolves, no batch runs, and none begins until `end`. */
    async hold(end: Promise<void>) {
      const begun = last;
      last = begun.then(() => end);
      await begun;
      await job.forget?.();
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await last;
      await job.stop?.();
    },
  };
}
