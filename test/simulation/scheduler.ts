import { AsyncLocalStorage } from 'node:async_hooks';
import type { Random } from './random.ts';

/*
 * One thread of control at a time. Requests, jobs and clients run until each of them waits at a gate: before a unit of
 * work, before a call to something outside, before a client's next attempt. Then the seed chooses who continues. SQLite
 * has a single connection, so between two gates nothing else could interleave.
 */

/** How long something lives. What waits at a gate when its life ends never continues. */
export interface Life {
  isOver: boolean;
}

/** A request, a job or a client, with all that it does at once. */
interface Task {
  readonly name: string;
  readonly life: Life;
  /** How many of its flows wait at gates, or for other tasks. */
  waiting: number;
}

/** A flow that waits at a gate. */
interface Waiter {
  readonly place: string;
  readonly life: Life;
  readonly task: Task | undefined;
  readonly resume: () => void;
}

export interface Scheduler {
  /** Waits until the seed chooses this one. */
  gate(place: string, life: Life): Promise<void>;
  /** Waits for another task. */
  await<T>(other: Promise<T>): Promise<T>;
  /** Starts something that waits at gates; its failure ends the simulation. */
  start(name: string, life: Life, work: () => Promise<void>): void;
  /** Lets one flow continue until all wait again. False if none waits. */
  resumeOne(): Promise<boolean>;
  /** Resolves when all flows wait or have ended. */
  settle(): Promise<void>;
  /** Forgets those whose life is over. */
  drop(): void;
  /** Advances the virtual time of timers. */
  advanceTimers(toMs: number): Promise<void>;
  dropTimers(): void;
  /** Restores the timers of the process. */
  close(): void;
  /** What has not ended, and what it waits for. */
  describe(): string;
}

const { setImmediate: turn } = globalThis;

/** How long a task may run without reaching a gate, real time. */
const STUCK_MS = 20_000;

/** What counts of one look at the clock to the next: the process may have been stopped meanwhile. */
const MAX_LOOK_MS = 250;

/** Ends when a loop has waited for too long; ask in each round. */
export function makePatience(now: () => number = () => performance.now()) {
  let [waitedMs, lookedMs] = [0, now()];
  return {
    isOver(): boolean {
      const nowMs = now();
      waitedMs += Math.min(nowMs - lookedMs, MAX_LOOK_MS);
      lookedMs = nowMs;
      return waitedMs > STUCK_MS;
    },
  };
}

/** How long to sleep until work outside of the thread is looked for again: it takes less than the shortest timer. */
const POOL_MS = 0.05;
const bed = new Int32Array(new SharedArrayBuffer(4));

/** How many timers may be due at once. */
const MAX_TIMERS = 100_000;

/** Within it, timers are virtual. The rest of the process keeps its own: other tests may have left something that polls. */
const inside = new AsyncLocalStorage<true>();

/** Runs a simulation. Timers that it sets follow its clock. */
export function withVirtualTimers<T>(work: () => Promise<T>): Promise<T> {
  return inside.run(true, work);
}

export function makeScheduler(random: Random, note: (text: string) => void, startMs: number): Scheduler {
  let waiters: Waiter[] = [];
  let failure: { readonly error: unknown } | undefined;
  const current = new AsyncLocalStorage<Task>();
  const running = new Set<Task>();
  const timers = makeVirtualTimers(startMs, current);

  const leave = ({ task }: Waiter): void => {
    if (task !== undefined) task.waiting -= 1;
  };
  const busy = (): Task | undefined =>
    [...running].find(({ waiting, life }) => waiting === 0 && !life.isOver);

  function describe(): string {
    const tasks = [...running].map(
      ({ name, waiting, life }) => `${name} (${life.isOver ? 'over' : waiting})`,
    );
    const places = waiters.map(({ place }) => place);
    const text = (all: readonly string[]): string => (all.length === 0 ? 'none' : all.join(', '));
    return `tasks: ${text(tasks)}; at gates: ${text(places)}; timers in ms: ${text(timers.describe())}`;
  }

  /**
   * Lets microtasks, ticks and slices of work run, until none is left. A task that neither waits nor has ended is in the
   * thread pool, or imports a module.
   */
  async function settle(): Promise<void> {
    const patience = makePatience();
    for (let quiet = 0; quiet < 2; ) {
      await new Promise<void>((resolve) => void turn(resolve));
      const isUnderWay = process.getActiveResourcesInfo().includes('Immediate');
      const task = isUnderWay ? undefined : busy();
      quiet = isUnderWay || task !== undefined ? 0 : quiet + 1;
      if (quiet > 0) continue;
      if (patience.isOver()) {
        const cause =
          task === undefined ? 'slices of work never end' : `\`${task.name}\` neither waits nor ends`;
        throw new Error(`${cause}; ${describe()}`);
      }
      if (task !== undefined) Atomics.wait(bed, 0, 0, POOL_MS);
    }
    if (failure !== undefined) throw failure.error;
  }

  return {
    gate(place, life) {
      const task = current.getStore();
      return new Promise<void>((resolve) => {
        if (life.isOver) return;
        if (task !== undefined) task.waiting += 1;
        waiters.push({ place, life, task, resume: resolve });
      });
    },
    async await(other) {
      const task = current.getStore();
      if (task !== undefined) task.waiting += 1;
      try {
        return await other;
      } finally {
        if (task !== undefined) task.waiting -= 1;
      }
    },
    start(name, life, work) {
      const task = { name, life, waiting: 0 };
      running.add(task);
      current
        .run(task, work)
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => running.delete(task));
    },
    async resumeOne() {
      if (waiters.length === 0) return false;
      const [waiter] = waiters.splice(random.below(waiters.length), 1);
      note(`resume ${waiter!.place}`);
      leave(waiter!);
      waiter!.resume();
      await settle();
      return true;
    },
    settle,
    drop() {
      for (const waiter of waiters) if (waiter.life.isOver) leave(waiter);
      waiters = waiters.filter(({ life }) => !life.isOver);
      for (const task of running) if (task.life.isOver) running.delete(task);
    },
    async advanceTimers(toMs) {
      let left = MAX_TIMERS;
      for (const due of timers.due(toMs)) {
        left -= 1;
        if (left < 0) throw new Error(`timers never end; ${describe()}`);
        due();
        await settle();
      }
    },
    dropTimers: timers.clear,
    close: timers.close,
    describe,
  };
}

/**
 * Timers that follow the clock of the simulation, in place of those of the process. A task with a timer waits: for the
 * timer, or for another task that ends it, such as the request before it whose turn it is.
 */
function makeVirtualTimers(startMs: number, current: AsyncLocalStorage<Task>) {
  const { setTimeout: kept, clearTimeout: keptClear } = globalThis;
  let nowMs = startMs;
  let count = 0;
  const waiting = new Map<
    number,
    { readonly atMs: number; readonly run: () => void; readonly task: Task | undefined }
  >();
  const remove = (id: number): void => {
    const task = waiting.get(id)?.task;
    if (task !== undefined) task.waiting -= 1;
    waiting.delete(id);
  };
  const ids = new WeakMap<object, number>();
  const handleOf = (id: number) => {
    const handle = { unref: () => handle, ref: () => handle, hasRef: () => false, refresh: () => handle };
    ids.set(handle, id);
    return handle;
  };
  const set = (run: (...values: unknown[]) => void, delayMs = 0, ...values: unknown[]) => {
    if (inside.getStore() === undefined) return kept(run, delayMs, ...values);
    count += 1;
    const task = current.getStore();
    if (task !== undefined) task.waiting += 1;
    waiting.set(count, { atMs: nowMs + delayMs, run: () => run(...values), task });
    return handleOf(count);
  };
  globalThis.setTimeout = set as unknown as typeof setTimeout;
  globalThis.clearTimeout = ((handle: unknown) => {
    const id = typeof handle === 'object' && handle !== null ? ids.get(handle) : undefined;
    if (id === undefined) keptClear(handle as NodeJS.Timeout | undefined);
    else remove(id);
  }) as typeof clearTimeout;
  return {
    *due(toMs: number): Generator<() => void> {
      for (;;) {
        const next = [...waiting]
          .filter(([, { atMs }]) => atMs <= toMs)
          .sort(([, x], [, y]) => x.atMs - y.atMs)[0];
        if (next === undefined) break;
        remove(next[0]);
        nowMs = Math.max(nowMs, next[1].atMs);
        yield next[1].run;
      }
      nowMs = toMs;
    },
    clear: () => waiting.clear(),
    describe: () => [...waiting.values()].map(({ atMs }) => String(atMs - nowMs)),
    close() {
      globalThis.setTimeout = kept;
      globalThis.clearTimeout = keptClear;
    },
  };
}
