import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

/** Has a process killed at the end of the test file that started it, or of this process. */
export function endWithFile(child: ChildProcess): void {
  running.add(child);
  child.once('exit', () => running.delete(child));
}

/**
 * Kills what is left. Vitest ends its workers by a signal, so that no handler of `exit` runs there; a server that
 * outlived its worker would keep the worker's streams open, and vitest would wait for them without a limit.
 */
export function killLeftOver(): void {
  for (const child of running) child.kill('SIGKILL');
}

process.once('exit', killLeftOver);
