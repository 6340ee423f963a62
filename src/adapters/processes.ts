import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../ports/runtime.ts';

/**
 * For the environment of child processes. The C library of most Linux systems gives each thread a pool of memory of its own,
 * and what the compiler threads of V8 have freed stays in theirs: 18 MB. It reads this variable only as a process starts.
 */
export const fewArenas: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: '2' };

/** A process that was started. */
export interface StartedProcess {
  /** Resolves when it can work; rejects when it ends before. */
  readonly isReady: Promise<void>;
  /** Resolves with the reason when it has ended. Never rejects. */
  readonly hasEnded: Promise<string>;
  /** Asks it to finish what is in progress and to end. It is forced to after a limit of its own. */
  retire(why: 'replaced' | 'stopped'): void;
}

/** A slot that always has a running process. */
export interface KeptProcess<Process extends StartedProcess> {
  /** The process that works now; undefined between the end of one and the start of the next. */
  current(): Process | undefined;
  /**
   * Starts a new process, and retires the current one once the new one is ready. Rejects, and keeps the current one, when
   * the new one does not become ready.
   */
  replace(): Promise<void>;
  /** Starts no more processes and waits for the end of the current one. */
  stop(): Promise<void>;
}

interface KeepOptions<Process extends StartedProcess> {
  /** For the log. */
  readonly name: string;
  readonly log: Log;
  readonly start: () => Process;
  /** Resolves after a pause that `signal` can cut short. Default: by the timers of the machine. */
  readonly wait?: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly nowMs?: () => number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** CHOICE: after working for this long, a process that dies is started again without a pause. */
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
      // `replace` may have been faster.
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
