import { readFileSync } from 'node:fs';
import { cpuMicrosecondsOf } from './process-usage.ts';

/** User and system CPU time so far of a process and all below it that still run, in microseconds. */
export function cpuOfTree(pid: number, isCounted: (commandLine: string) => boolean = () => true): number {
  try {
    const own = isCounted(readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ? cpuMicrosecondsOf(pid) : 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return children
      .filter((child) => child !== '')
      .reduce((sum, child) => sum + cpuOfTree(Number(child), isCounted), own);
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}
