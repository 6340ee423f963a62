import { bringDueTimesTo, LAST_MS, passTimeTo } from './clock.ts';
import type { ControlContext } from './control-plane.ts';

/*
 * The JSON-RPC methods that move time. All chains and the server share one clock. These methods therefore move it
 * like `PUT /_sandbox/clock`, and everything that becomes due on the way happens.
 */

type ClockContext = Pick<
  ControlContext,
  'clock' | 'read' | 'change' | 'runDueJobs' | 'actJobs' | 'finishJobs' | 'eventLog' | 'movedByRpc'
>;

/** How far JSON-RPC clients have moved the clock. */
export interface MovedByRpc {
  totalMs: number;
  /** For each snapshot, by chain and id: how far the clock had been moved, and the event log at that time. */
  readonly atSnapshots: Map<string, { readonly totalMs: number; readonly eventLog: string }>;
}

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

const MOST_SNAPSHOTS = 10_000;

/** Thrown for a parameter that is no time to which the clock can be moved. */
export class RpcTimeError extends Error {
  override readonly name = 'RpcTimeError';
}

/**
 * Runs a method that only moves the clock, and returns its result. Returns undefined for other methods.
 *
 * @throws RpcTimeError
 */
export async function moveTime({ method, params }: Call, context: ClockContext): Promise<number | undefined> {
  if (method !== 'evm_increaseTime' && method !== 'anvil_increaseTime') return undefined;
  await moveTo(context.clock.now() + secondsOf(params[0]) * 1000, context);
  return Math.floor(context.movedByRpc.totalMs / 1000);
}

/**
 * Moves the clock as far as a method requires, before the chain runs the method.
 *
 * @throws RpcTimeError
 */
export async function moveBefore(
  caip2: string,
  { method, params }: Call,
  context: ClockContext,
): Promise<void> {
  const [first] = params;
  if (method === 'evm_setNextBlockTimestamp' || method === 'anvil_setNextBlockTimestamp') {
    const targetMs = secondsOf(first) * 1000;
    if (targetMs > context.clock.now()) await moveTo(targetMs, context);
  }
  if (method === 'evm_mine') {
    const time =
      typeof first === 'object' && first !== null ? (first as { timestamp?: unknown }).timestamp : first;
    if (time != null && secondsOf(time) * 1000 > context.clock.now())
      await moveTo(secondsOf(time) * 1000, context);
  }
  if (method === 'evm_revert') await moveBack(caip2, first, context);
}

/** Records how far the clock had been moved when a snapshot was taken. */
export function noteSnapshot(caip2: string, id: unknown, { movedByRpc, eventLog }: ClockContext): void {
  const { atSnapshots, totalMs } = movedByRpc;
  atSnapshots.set(`${caip2} ${Number(id)}`, { totalMs, eventLog: eventLog() });
  if (atSnapshots.size > MOST_SNAPSHOTS) atSnapshots.delete(atSnapshots.keys().next().value!);
}

async function moveTo(targetMs: number, context: ClockContext): Promise<void> {
  if (targetMs > LAST_MS) throw new RpcTimeError(`expected a time before 9900, got \`${targetMs}\` ms`);
  const { clock, movedByRpc } = context;
  movedByRpc.totalMs += targetMs - clock.now();
  await passTimeTo(targetMs, context);
}

/**
 * CHOICE: `evm_revert` undoes the moves of the clock by JSON-RPC since the snapshot. It does not undo time that has
 * passed.
 */
async function moveBack(
  caip2: string,
  id: unknown,
  { clock, change, ...context }: ClockContext,
): Promise<void> {
  const { movedByRpc, eventLog } = context;
  const snapshot = movedByRpc.atSnapshots.get(`${caip2} ${Number(id)}`);
  if (snapshot === undefined || snapshot.eventLog !== eventLog()) return;
  const backMs = movedByRpc.totalMs - snapshot.totalMs;
  if (backMs <= 0) return;
  movedByRpc.totalMs = snapshot.totalMs;
  const targetMs = clock.now() - backMs;
  clock.set(targetMs);
  await change((em) => bringDueTimesTo(em, targetMs));
}

function secondsOf(value: unknown): number {
  const seconds = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds >= 0) return seconds;
  throw new RpcTimeError('invalid argument: expected a number of seconds');
}
