import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../ports/runtime.ts';

/**
 * Environment variables for child processes. On most Linux systems, the C library gives each thread its own memory
 * pool, and memory that V8's compiler threads have freed stays there: 18 MB. The library reads this variable only when
 * a process starts.
 */
export const fewArenas: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: '2' };

/** A running child process. */
export interface StartedProcess {
  /** Resolves when the process is ready to work. Rejects when it ends earlier. */
  readonly isReady: Promise<void>;
  /** Resolves with the reason when the process has ended. Never rejects. */
  readonly hasEnded: Promise<string>;
  /** Tells the process to finish its current work and to end. After a time limit, it is killed. */
  retire(why: 'replaced' | 'stopped'): void;
}

/** A child process that is started again whenever it ends. */
export interface KeptProcess<Process extends StartedProcess> {
  /** Returns the current process. Undefined between the end of one process and the start of the next. */
  current(): Process | undefined;
  /**
   * Starts a new process, and retires the current one once the new one is ready. If the new one does not become
   * ready, keeps the current one and rejects.
   */
  replace(): Promise<void>;
  /** Starts no more processes, and waits for the end of the current one. */
  stop(): Promise<void>;
}

interface KeepOptions<Process extends StartedProcess> {
  /** The name in log lines. */
  readonly name: string;
  readonly log: Log;
  readonly start: () => Process;
  /** Resolves after a pause, or earlier when `signal` is aborted. By default, it uses the system's timers. */
  readonly wait?: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly nowMs?: () => number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** CHOICE: a process that ends after it has run for this long is started again without a pause. */
const HEALTHY_MS = 60_000;

/**
 * Keeps a process running: when it exits unexpectedly, starts it again after a pause that doubles each time. Rejects
 * when the first process does not become ready.
 */
export async function keepRunning<Process extends StartedProcess>({
  name,
  log,
  start,
  wait = (delayMs, signal) => pause(delayMs, undefined, { signal }).catch(() => undefined),
  nowMs = () => performance.now(),
}: KeepOptions<Process>): Promise<KeptProcess<Process>> {
  const stopping = new AbortController();
  let current: Process | undefined;
  let pauseMs = FIRST_PAUSE_MS;

  function adopt(process: Process): void {
    const startedMs = nowMs();
    current = process;
    void process.hasEnded.then(async (reason) => {
      if (current !== process) return;
      current = undefined;
      if (stopping.signal.aborted) return;
      if (nowMs() - startedMs >= HEALTHY_MS) pauseMs = FIRST_PAUSE_MS;
      log.error(
        { process: name, reason, restart_in_ms: pauseMs },
        'process exited unexpectedly; restarting it',
      );
      await wait(pauseMs, stopping.signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      // `replace` may have started a process in the meantime.
      if (stopping.signal.aborted || current !== undefined) return;
      const next = start();
      next.isReady.catch(() => undefined);
      adopt(next);
    });
  }

  const first = start();
  await first.isReady;
  adopt(first);
  return {
    current: () => current,
    async replace() {
      const next = start();
      await next.isReady;
      const previous = current;
      adopt(next);
      if (stopping.signal.aborted) next.retire('stopped');
      previous?.retire('replaced');
      await previous?.hasEnded;
    },
    async stop() {
      stopping.abort();
      const last = current;
      last?.retire('stopped');
      await last?.hasEnded;
    },
  };
}
