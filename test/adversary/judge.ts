// Judges what was observed of a run. It knows no server: its input is data, and so is its result.

/** What must hold while the attackers are at work, and what is said when it does not. */
export type Rule =
  | 'an internal error'
  | 'an answer without a secret'
  | 'something unsigned was signed'
  | 'data of another tenant'
  | 'a wrong signature'
  | 'a wrong payment'
  | 'an acknowledged change is missing'
  | 'refused while nothing was cut'
  | 'too slow'
  | 'a process ended'
  | 'too much memory'
  | 'a stalled event loop'
  | 'an attacker does not work';

export interface Fault {
  readonly rule: Rule;
  /** The case, and the result. */
  readonly text: string;
}

/** ms of `performance.now()`. */
interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** A time in which something was cut: by the environment, or at the node, which only transfers need. */
export interface Cut extends Span {
  readonly what: string;
  readonly where: 'environment' | 'node';
}

/** One request of the honest client, with its repetitions. */
export interface HonestCall extends Span {
  readonly kind: 'create' | 'sign' | 'read' | 'transfer';
  readonly isAttacked: boolean;
  /** The attempts that were refused although they could be repeated, or that got no answer. */
  readonly refusals: readonly (Span & { readonly text: string; readonly isRepeatable: boolean })[];
  /** Of the last attempt. */
  readonly status: number;
  readonly text: string;
}

/** A request to /healthz of a process. */
export interface Probe extends Span {
  readonly process: string;
  /** What the main thread of the process has worked meanwhile. */
  readonly cpuMs: number | undefined;
}

interface MemorySample {
  readonly process: string;
  readonly megabytes: number;
}

export interface Observations {
  /** What was seen to be wrong at once. */
  readonly faults: readonly Fault[];
  readonly cuts: readonly Cut[];
  readonly calls: readonly HonestCall[];
  readonly probes: readonly Probe[];
  readonly memory: readonly MemorySample[];
  /** How often each case of each attacker ran. */
  readonly attacks: ReadonlyMap<string, number>;
}

export interface Bounds {
  /** The p99 of the honest client may be this many times its p99 alone. */
  readonly slowdown: number;
  /** And is never too slow below this: on a busy machine, single requests take as long without any attack. */
  readonly floorMs: number;
  /** By process. */
  readonly megabytes: Readonly<Record<string, number>>;
  /** What a thread may work on without answering. */
  readonly stallCpuMs: number;
  /** How long it may take to answer for any reason. */
  readonly stallMs: number;
  /** Attackers who must have done something. */
  readonly attackers: readonly string[];
}

/** How long what was cut may have effects: a second of `Retry-After`, and a reconnection. */
const AFTERMATH_MS = 2_500;

function overlaps(span: Span, { fromMs, untilMs }: Span): boolean {
  return span.fromMs <= untilMs + AFTERMATH_MS && span.untilMs >= fromMs;
}

/** The least value that 99 of 100 do not exceed; 0 of none. */
export function p99(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
}

export function judge(seen: Observations, bounds: Bounds): Fault[] {
  return [
    ...seen.faults,
    ...refusedCalls(seen),
    ...slowCalls(seen, bounds),
    ...stalls(seen, bounds),
    ...largeProcesses(seen, bounds),
    ...idleAttackers(seen, bounds),
  ];
}

/** Whether something that the call needs was cut while it ran. */
function isExcused(kind: HonestCall['kind'], span: Span, cuts: readonly Cut[]): boolean {
  return cuts.some((cut) => (cut.where === 'environment' || kind === 'transfer') && overlaps(span, cut));
}

function refusedCalls({ calls, cuts }: Observations): Fault[] {
  return calls.flatMap((call) => {
    const refusals = call.refusals.filter(
      (refusal) => !refusal.isRepeatable || !isExcused(call.kind, refusal, cuts),
    );
    const isFinal = call.status >= 400 && !isExcused(call.kind, call, cuts);
    const texts = [...refusals.map(({ text }) => text), ...(isFinal ? [`${call.status} ${call.text}`] : [])];
    return texts.map(
      (text): Fault => ({
        rule: 'refused while nothing was cut',
        text: `${call.kind} of the honest client at ${Math.round(call.fromMs)} ms: ${text}`,
      }),
    );
  });
}

/** Transfers apart: they ask a node, and take several times as long. */
function slowCalls({ calls, cuts }: Observations, { slowdown, floorMs }: Bounds): Fault[] {
  return ([true, false] as const).flatMap((isTransfer) => {
    const times = (isAttacked: boolean): number[] =>
      calls
        .filter((call) => (call.kind === 'transfer') === isTransfer && call.isAttacked === isAttacked)
        .filter((call) => !isExcused(call.kind, call, cuts))
        .map(({ fromMs, untilMs }) => untilMs - fromMs);
    const [alone, attacked] = [p99(times(false)), p99(times(true))].map(Math.round) as [number, number];
    const most = Math.max(floorMs, slowdown * alone);
    if (attacked <= most) return [];
    const what = isTransfer ? 'transfers' : 'requests';
    const text = `p99 of the honest client's ${what} is ${attacked} ms, alone ${alone} ms, at most ${most} ms`;
    return [{ rule: 'too slow', text } as const];
  });
}

function stalls({ probes, cuts }: Observations, { stallCpuMs, stallMs }: Bounds): Fault[] {
  const isLost = (probe: Probe): boolean =>
    cuts.some((cut) => cut.where === 'environment' && overlaps(probe, cut));
  return probes.flatMap((probe) => {
    const waited = Math.round(probe.untilMs - probe.fromMs);
    const isBusy = (probe.cpuMs ?? 0) > stallCpuMs;
    if (!isBusy && (waited <= stallMs || isLost(probe))) return [];
    const text = `${probe.process}: /healthz took ${waited} ms, in which its thread worked ${probe.cpuMs} ms`;
    return [{ rule: 'a stalled event loop', text } as const];
  });
}

function largeProcesses({ memory }: Observations, { megabytes }: Bounds): Fault[] {
  return Object.entries(megabytes).flatMap(([process, most]) => {
    const samples = memory.filter((sample) => sample.process === process);
    const largest = Math.round(Math.max(0, ...samples.map((sample) => sample.megabytes)));
    if (largest <= most) return [];
    return [{ rule: 'too much memory', text: `${process}: ${largest} MB, at most ${most} MB` } as const];
  });
}

/** A run in which an attacker did nothing shows nothing. */
function idleAttackers({ attacks }: Observations, { attackers }: Bounds): Fault[] {
  return attackers
    .filter((attacker) => ![...attacks.keys()].some((name) => name.startsWith(`${attacker}: `)))
    .map((attacker) => ({ rule: 'an attacker does not work', text: attacker }));
}
