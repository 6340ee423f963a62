import { existsSync, readFileSync } from 'node:fs';

// Linux reports CPU times in clock ticks, which are 100 per second on every platform that Node supports.
const MICROSECONDS_PER_TICK = 10_000;

/** Whether this system reports the usage of each process. */
export function canMeasureProcesses(): boolean {
  return existsSync('/proc/self/stat');
}

/** User and system CPU time of all threads of a process so far, in microseconds. */
export function cpuMicrosecondsOf(pid: number): number {
  const [user = 0, system = 0] = ticksOf(pid);
  return (user + system) * MICROSECONDS_PER_TICK;
}

/** User and system time of a process, in clock ticks. */
function ticksOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may contain spaces. `state` follows it; the times are the 12th and 13th fields from there.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 13).map(Number);
}

/** The same of a process and its children, such as a signer. */
export function cpuWithChildrenOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return [pid, ...children.filter((child) => child !== '').map(Number)]
    .map(cpuMicrosecondsOf)
    .reduce((sum, each) => sum + each, 0);
}

/** Resident memory of a process in megabytes of 10^6 bytes. */
export function residentMegabytesOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return (Number(kilobytes ?? 0) * 1024) / 1e6;
}

/** CPU time of the whole machine so far, in microseconds over all cores. */
export function machineBusyMicroseconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) * MICROSECONDS_PER_TICK;
}
