import { bringDueTimesTo, LAST_MS, passTimeTo } from './clock.ts';
import type { ControlContext } from './control-plane.ts';

/*
 * The methods of JSON-RPC that move time. The clock is one for all chains and the server, so it moves as `PUT
 * /_sandbox/clock` moves it, and everything that is due on the way happens.
 */

type ClockContext = Pick<
  ControlContext,
  'clock' | 'read' | 'change' | 'runDueJobs' | 'actJobs' | 'finishJobs' | 'eventLog' | 'movedByRpc'
>;

/** How far clients of JSON-RPC have moved the clock. */
export interface MovedByRpc {
  totalMs: number;
  /** By chain and id of the snapshot: how far it was moved then, and the event log of that time. */
  readonly atSnapshots: Map<string, { readonly totalMs: number; readonly eventLog: string }>;
}

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

const MOST_SNAPSHOTS = 10_000;

/** A parameter names no time that the clock can be moved to. */
export class RpcTimeError extends Error {
  override readonly name = 'RpcTimeError';
}

/** The result of a method that only moves the clock; undefined for other methods. Throws RpcTimeError. */
export async function moveTime({ method, params }: Call, context: ClockContext): Promise<number | undefined> {
  if (method !== 'evm_increaseTime' && method !== 'anvil_increaseTime') return undefined;
  await moveTo(context.clock.now() + secondsOf(params[0]) * 1000, context);
  return Math.floor(context.movedByRpc.totalMs / 1000);
}

/** Moves the clock as far as a method of a chain needs, before the chain runs it. Throws RpcTimeError. */
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

/** Notes how far the clock was moved when a snapshot was taken. */
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

/** CHOICE: `evm_revert` takes back what JSON-RPC has moved the clock by since the snapshot, and no time that has passed. */
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
