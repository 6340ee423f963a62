import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type CustomPrecompile, EVMError, getActivePrecompiles } from '@ethereumjs/evm';
import { chainRules } from './chain-rules.ts';
import type { PrecompileCall, PrecompileResult } from './precompile-worker.ts';

// A call of a precompile cannot be paused and may take seconds, so long calls run in a separate thread.

/** By the number of the precompile: returns whether an input takes longer than a few milliseconds. */
const isLong: Readonly<Record<number, (data: Uint8Array) => boolean>> = {
  2: ({ length }) => length > 500_000,
  3: ({ length }) => length > 100_000,
  5: ({ length }) => length > 256,
  8: ({ length }) => length > 0,
  // BLAKE2's input begins with the number of rounds.
  9: ([first = 0, second = 0, third = 0]) => first + second > 0 || third > 0x40,
  10: () => true,
  12: ({ length }) => length > 160,
  14: ({ length }) => length > 288,
  15: ({ length }) => length > 0,
};

const CHECK_MS = 50;
/** An idle thread ends after this time, because it takes 40 MB of memory. */
const IDLE_MS = 10_000;

/**
 * Returns the precompiles whose calls can be long.
 *
 * @param check called repeatedly during a long call. If it throws, the call ends with that error.
 */
export function longPrecompiles(check: () => void): CustomPrecompile[] {
  const standard = getActivePrecompiles(chainRules(1n));
  const thread = makeThread();
  return Object.entries(isLong).map(([number, isLongInput]) => {
    const address = Number(number).toString(16).padStart(40, '0');
    const atOnce = standard.get(address)!;
    return {
      address: `0x${address}`,
      async function(input) {
        const { data, gasLimit } = input;
        if (!isLongInput(data)) return atOnce(input);
        const { gasUsed, returned, error } = await thread({ address, data, gasLimit }, check);
        return {
          ...{ executionGasUsed: gasUsed, returnValue: returned },
          ...(error === undefined ? {} : { exceptionError: new EVMError(error as EVMError['error']) }),
        };
      },
    };
  });
}

/** Returns a function that runs one call at a time in a thread. The thread is started for the first call. */
function makeThread(): (call: PrecompileCall, check: () => void) => Promise<PrecompileResult> {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  return async (call, check) => {
    clearTimeout(idle);
    worker ??= startWorker();
    const running = worker;
    const ended = new AbortController();
    const timer = setInterval(() => {
      try {
        check();
      } catch (error) {
        ended.abort(error);
      }
    }, CHECK_MS);
    running.ref();
    try {
      running.postMessage(call);
      const [result] = await once(running, 'message', { signal: ended.signal });
      return result;
    } catch (error) {
      worker = undefined;
      void running.terminate();
      throw ended.signal.aborted ? ended.signal.reason : error;
    } finally {
      clearInterval(timer);
      running.unref();
      idle = setTimeout(() => {
        worker = undefined;
        void running.terminate();
      }, IDLE_MS).unref();
    }
  };
}

function startWorker(): Worker {
  // In the bundle, the thread's file is next to the program's file.
  const isSource = import.meta.url.endsWith('.ts');
  const worker = new Worker(
    join(import.meta.dirname, isSource ? 'precompile-worker.ts' : 'precompile-worker.cjs'),
  );
  worker.unref();
  return worker;
}
