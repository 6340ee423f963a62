import { expect, test, vi } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { type Job, startJobs } from '../../../src/jobs/runner.ts';

/** A job with this many batches of work. */
function pile(name: string, size: number, done: string[], everyMs = 3_600_000): Job & { add(): void } {
  let left = size;
  return {
    name,
    everyMs,
    add: () => {
      left += 1;
    },
    async run() {
      if (left === 0) return false;
      left -= 1;
      done.push(name);
      return left > 0;
    },
  };
}

test('settling runs everything that is due, including work that jobs create for each other', async () => {
  const done: string[] = [];
  const second = pile('second', 0, done);
  const first: Job = { ...pile('first', 2, done), name: 'first' };
  const feeding: Job = {
    ...first,
    async run() {
      const before = done.length;
      const hasMore = await first.run(() => undefined);
      if (done.length > before) second.add();
      return hasMore;
    },
  };
  // The job that gets new work comes first, so that only a second round runs it.
  const jobs = startJobs([second, feeding], silentLog);
  await jobs.settle();
  await jobs.stop();
  expect(done.sort()).toEqual(['first', 'first', 'second', 'second']);
});

test('a job that fails is retried, and the others continue', async () => {
  const done: string[] = [];
  let fails = 1;
  const shaky: Job = {
    name: 'shaky',
    everyMs: 3_600_000,
    async run() {
      if (fails-- > 0) throw new Error('the network is down');
      done.push('shaky');
      return false;
    },
  };
  const jobs = startJobs([shaky, pile('steady', 1, done)], silentLog);
  await jobs.settle();
  await jobs.settle();
  await jobs.stop();
  expect(done).toEqual(['steady', 'shaky']);
});

test('a job never overlaps with itself, however often it is woken', async () => {
  let running = 0;
  let most = 0;
  const job: Job = {
    name: 'slow',
    everyMs: 1,
    async run() {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      return false;
    },
  };
  const jobs = startJobs([job], silentLog);
  for (let round = 0; round < 5; round += 1) {
    jobs.wake('slow');
    await Promise.all([jobs.settle(), jobs.settle()]);
  }
  await jobs.stop();
  expect(most).toBe(1);
});

test('stopping waits for the current batch and starts no other', async () => {
  const done: string[] = [];
  let finish = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const jobs = startJobs(
    [
      {
        name: 'long',
        everyMs: 0,
        async run() {
          done.push('begun');
          await begun;
          done.push('finished');
          return true;
        },
      },
    ],
    silentLog,
  );
  while (done.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const stopped = jobs.stop();
  finish();
  await stopped;
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(done).toEqual(['begun', 'finished']);
});

test('settling does not wait for work that continues after a batch, finishing does', async () => {
  const underWay = Promise.withResolvers<void>();
  let isOver = false;
  let left: Promise<void> | undefined = underWay.promise.then(() => {
    isOver = true;
  });
  const job: Job = {
    ...pile('endless', 0, []),
    async finish() {
      const wasUnderWay = left !== undefined;
      await left;
      left = undefined;
      return wasUnderWay;
    },
  };
  const jobs = startJobs([job], silentLog);
  await jobs.settle();
  expect(isOver).toBe(false);
  const finished = jobs.finish();
  underWay.resolve();
  await finished;
  expect(isOver).toBe(true);
  await jobs.stop();
});

test('work runs while all jobs are paused and have dropped what they had read', async () => {
  const done: string[] = [];
  const batch = Promise.withResolvers<void>();
  const forgetting = Promise.withResolvers<void>();
  const job: Job = {
    name: 'busy',
    everyMs: 3_600_000,
    async run() {
      done.push('batch begins');
      await batch.promise;
      done.push('batch ends');
      return false;
    },
    async forget() {
      await forgetting.promise;
      done.push('forgotten');
    },
  };
  const jobs = startJobs([job], silentLog);
  const settled = jobs.settle();
  while (done.length === 0) await new Promise((resolve) => setImmediate(resolve));
  let later = Promise.resolve();
  const paused = jobs.whilePaused(
    async () => {
      later = jobs.settle();
      await new Promise((resolve) => setImmediate(resolve));
      done.push('reset');
    },
    { mustForget: true },
  );
  batch.resolve();
  forgetting.resolve();
  await Promise.all([settled, paused]);
  await later;
  await jobs.stop();
  expect(done).toEqual(['batch begins', 'batch ends', 'forgotten', 'reset', 'batch begins', 'batch ends']);
});

test('after work that fails while they are paused, the jobs continue', async () => {
  const done: string[] = [];
  const jobs = startJobs([pile('steady', 1, done)], silentLog);
  await expect(
    jobs.whilePaused(() => Promise.reject(new Error('no space')), { mustForget: true }),
  ).rejects.toThrow('no space');
  await jobs.settle();
  expect(done).toEqual(['steady']);
  await jobs.stop();
});

test('a job that keeps failing is tried less and less often, also if it is woken', async () => {
  vi.useFakeTimers();
  try {
    let runs = 0;
    let isDown = true;
    const jobs = startJobs(
      [
        {
          name: 'one',
          everyMs: 1_000,
          async run() {
            runs += 1;
            if (isDown) throw new Error('away');
            return false;
          },
        },
      ],
      silentLog,
    );
    const runsIn = async (ms: number) => {
      const before = runs;
      for (let passed = 0; passed < ms; passed += 500) {
        jobs.wake('one');
        await vi.advanceTimersByTimeAsync(500);
      }
      return runs - before;
    };
    // After 1, 2, 4, 8, 16 s and then every 30 s.
    expect(await runsIn(60_000)).toBeLessThanOrEqual(9);
    expect(await runsIn(300_000)).toBeLessThanOrEqual(11);
    isDown = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await runsIn(10_000)).toBeGreaterThanOrEqual(10);
    await jobs.stop();
  } finally {
    vi.useRealTimers();
  }
});

test('an idle job sleeps longer, until it is woken or expected', async () => {
  vi.useFakeTimers();
  try {
    const ranAt: number[] = [];
    let isBusy = false;
    const startedMs = Date.now();
    const job: Job = {
      ...{ name: 'idle', everyMs: 1_000, idleMs: 60_000 },
      isIdle: () => !isBusy,
      async run() {
        ranAt.push(Date.now() - startedMs);
        return false;
      },
    };
    const jobs = startJobs([job], silentLog);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(ranAt).toEqual([1_000]);
    // Its last batch is long ago.
    jobs.wakeSoon('idle');
    await vi.advanceTimersByTimeAsync(100);
    expect(ranAt).toEqual([1_000, 59_000]);
    // However often it is expected, it keeps its pace.
    for (let each = 0; each < 30; each += 1) {
      jobs.wakeSoon('idle');
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(ranAt).toEqual([1_000, 59_000, 60_000, 61_000, 62_000]);
    jobs.wake('idle');
    await vi.advanceTimersByTimeAsync(0);
    expect(ranAt.at(-1)).toBe(62_100);
    isBusy = true;
    jobs.wake('idle');
    await vi.advanceTimersByTimeAsync(2_500);
    expect(ranAt.slice(-3)).toEqual([62_100, 63_100, 64_100]);
    await jobs.stop();
  } finally {
    vi.useRealTimers();
  }
});

test.each(['before its first batch', 'while it is idle'])(
  'a job that is woken and then expected %s runs immediately',
  async (when) => {
    vi.useFakeTimers();
    try {
      let runs = 0;
      const job: Job = {
        ...{ name: 'idle', everyMs: 1_000, idleMs: 60_000 },
        async run() {
          runs += 1;
          return false;
        },
      };
      const jobs = startJobs([job], silentLog);
      await vi.advanceTimersByTimeAsync(when === 'while it is idle' ? 60_200 : 200);
      runs = 0;
      jobs.wake('idle');
      jobs.wakeSoon('idle');
      await vi.advanceTimersByTimeAsync(1);
      expect(runs).toBe(1);
      await jobs.stop();
    } finally {
      vi.useRealTimers();
    }
  },
);

test('a job that is expected during its batch runs again after its pause', async () => {
  vi.useFakeTimers();
  try {
    let runs = 0;
    const job: Job = {
      ...{ name: 'slow', everyMs: 1_000, idleMs: 60_000 },
      async run() {
        runs += 1;
        await new Promise((resolve) => setTimeout(resolve, 500));
        return false;
      },
    };
    const jobs = startJobs([job], silentLog);
    // It begins idle.
    await vi.advanceTimersByTimeAsync(1_200);
    expect(runs).toBe(0);
    jobs.wakeSoon('slow');
    await vi.advanceTimersByTimeAsync(200);
    jobs.wakeSoon('slow');
    await vi.advanceTimersByTimeAsync(1_300);
    expect(runs).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs).toBe(2);
    const stopped = jobs.stop();
    await vi.runAllTimersAsync();
    await stopped;
  } finally {
    vi.useRealTimers();
  }
});

test('a job that all else waits for keeps its pace while it fails, and the others pause for longer', async () => {
  vi.useFakeTimers();
  try {
    const runs = { patient: 0, steady: 0 };
    const failing = (name: keyof typeof runs, keepsPace: boolean): Job => ({
      ...{ name, everyMs: 1_000, keepsPace },
      async run() {
        runs[name] += 1;
        throw new Error('the database is away');
      },
    });
    const jobs = startJobs([failing('patient', false), failing('steady', true)], silentLog);
    await vi.advanceTimersByTimeAsync(60_500);
    expect(runs).toEqual({ patient: 6, steady: 60 });
    await jobs.stop();
  } finally {
    vi.useRealTimers();
  }
});

test('jobs of upkeep run once, after the others, when everything settles, and not when jobs act', async () => {
  const done: string[] = [];
  const tidying: Job = { ...pile('tidying', 1, done), isUpkeep: true };
  const jobs = startJobs([tidying, pile('first', 2, done), pile('second', 2, done)], silentLog);
  await jobs.act(0);
  expect(done).toEqual(['first', 'first', 'second', 'second']);
  await jobs.settle();
  expect(done.at(-1)).toBe('tidying');
  await jobs.stop();
});

test('acting waits for work that continues after a batch as long as it may, and then runs what follows from it', async () => {
  const done: string[] = [];
  const answer = Promise.withResolvers<void>();
  const next = pile('next', 0, done);
  let isUnderWay = true;
  let waits = 0;
  void answer.promise.then(() => {
    isUnderWay = false;
    next.add();
  });
  const job: Job = {
    ...pile('hanging', 0, done),
    async finish() {
      if (!isUnderWay) return false;
      waits += 1;
      await answer.promise;
      return true;
    },
  };
  const jobs = startJobs([next, job], silentLog);
  await jobs.act(1);
  expect({ waits, done }).toEqual({ waits: 1, done: [] });
  const acted = jobs.act(60_000);
  while (waits < 2) await new Promise((resolve) => setImmediate(resolve));
  answer.resolve();
  await acted;
  expect(done).toEqual(['next']);
  await jobs.stop();
});
