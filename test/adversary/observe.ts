import { readFileSync } from 'node:fs';
import type { Cut, Fault, HonestCall, Observations, Probe, Rule } from './judge.ts';

/** Where all that takes part in a run notes what it sees. */
export interface Notes extends Observations {
  fault(rule: Rule, text: string): void;
  /** Notes that a case of an attacker runs. */
  attack(attacker: string, subject: string): void;
  call(call: HonestCall): void;
  probe(probe: Probe): void;
  resident(process: string, pid: number): void;
  /** Notes that something is cut, until the work has ended. */
  cut<T>(what: string, where: Cut['where'], work: () => Promise<T>): Promise<T>;
}

/** Of faults of one kind, more say nothing new. */
const MAX_FAULTS = 200;

export function makeNotes(): Notes {
  const notes = {
    faults: [] as Fault[],
    cuts: [] as Cut[],
    calls: [] as HonestCall[],
    probes: [] as Probe[],
    memory: [] as { process: string; megabytes: number }[],
    attacks: new Map<string, number>(),
  };
  return {
    ...notes,
    fault(rule, text) {
      if (notes.faults.length < MAX_FAULTS) notes.faults.push({ rule, text: text.slice(0, 1_000) });
    },
    attack(attacker, subject) {
      const name = `${attacker}: ${subject}`;
      notes.attacks.set(name, (notes.attacks.get(name) ?? 0) + 1);
    },
    call: (call) => void notes.calls.push(call),
    probe: (probe) => void notes.probes.push(probe),
    resident(process, pid) {
      const megabytes = residentMegabytes(pid);
      if (megabytes !== undefined) notes.memory.push({ process, megabytes });
    },
    async cut(what, where, work) {
      const cut = { what, where, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
      notes.cuts.push(cut);
      try {
        return await work();
      } finally {
        cut.untilMs = performance.now();
      }
    },
  };
}

/** Undefined where the system does not say, or the process has ended. */
function residentMegabytes(pid: number): number | undefined {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readProcess(`${pid}/status`))?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** Linux counts in hundredths of a second. */
const MS_PER_TICK = 10;

/** What the main thread of a process has worked so far. */
export function workedMs(pid: number): number | undefined {
  // The name of the program, in parentheses, may contain spaces.
  const fields = readProcess(`${pid}/task/${pid}/stat`).split(') ')[1]?.split(' ');
  return fields === undefined ? undefined : MS_PER_TICK * (Number(fields[11]) + Number(fields[12]));
}

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  return readProcess(`${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
}

function readProcess(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, 'utf8');
  } catch {
    return '';
  }
}
