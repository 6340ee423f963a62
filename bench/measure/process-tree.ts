import { readFileSync } from 'node:fs';
import { cpuWithEndedChildrenOf } from './process-usage.ts';

/** User and system CPU time so far of a process and all below it, also those that have ended, in microseconds. */
export function cpuOfTree(pid: number, isCounted: (commandLine: string) => boolean = () => true): number {
  try {
    const own = isCounted(readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ? cpuWithEndedChildrenOf(pid) : 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return children
      .filter((child) => child !== '')
      .reduce((sum, child) => sum + cpuOfTree(Number(child), isCounted), own);
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}
