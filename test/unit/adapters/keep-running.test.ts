import { expect, test } from 'vitest';
import { keepRunning, type StartedProcess } from '../../../src/adapters/processes.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A process whose life the test decides. */
function scripted() {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const retired: string[] = [];
  const process: StartedProcess = {
    isReady: ready.promise,
    hasEnded: ended.promise,
    retire: (why) => {
      retired.push(why);
      ended.resolve('retired');
    },
  };
  const die = (reason: string): void => {
    ready.reject(new Error(reason));
    ended.resolve(reason);
  };
  return { process, retired, live: ready.resolve, die };
}

function place() {
  const started: ReturnType<typeof scripted>[] = [];
  const pauses: number[] = [];
  let nowMs = 0;
  const kept = keepRunning({
    name: 'worker',
    log: silent,
    start() {
      const next = scripted();
      started.push(next);
      return next.process;
    },
    async wait(delayMs) {
      pauses.push(delayMs);
    },
    nowMs: () => nowMs,
  });
  return {
    started,
    pauses,
    kept,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a process that ends is started again after a pause that doubles, and is short again after a healthy minute', async () => {
  const { started, pauses, kept, pass } = place();
  started[0]!.live();
  await kept;
  for (let death = 0; death < 9; death += 1) {
    started.at(-1)!.die('SIGKILL');
    await turn();
  }
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  pass(60_000);
  started.at(-1)!.die('SIGKILL');
  await turn();
  expect(pauses.at(-1)).toBe(250);
  expect(started).toHaveLength(11);
});

test('the current process retires only when the next one is ready, and stays when that one is not', async () => {
  const { started, kept } = place();
  started[0]!.live();
  const worker = await kept;
  const failing = worker.replace();
  started[1]!.die('exit code 1');
  await expect(failing).rejects.toThrow('exit code 1');
  expect(worker.current()).toBe(started[0]!.process);
  const replacing = worker.replace();
  await turn();
  expect(started[0]!.retired).toEqual([]);
  started[2]!.live();
  await replacing;
  expect(started[0]!.retired).toEqual(['replaced']);
  expect(worker.current()).toBe(started[2]!.process);
  await worker.stop();
  expect(started[2]!.retired).toEqual(['stopped']);
  await turn();
  expect(started).toHaveLength(3);
});

test('the first process must become ready', async () => {
  const { started, kept } = place();
  started[0]!.die('exit code 1');
  await expect(kept).rejects.toThrow('exit code 1');
  await turn();
  expect(started).toHaveLength(1);
});
