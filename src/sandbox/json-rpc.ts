import { isUnavailable } from '../errors.ts';
import { bringDueTimesTo, LAST_MS, passTimeTo } from './clock.ts';
import type { ControlContext } from './control-plane.ts';
import type { RpcConnection } from './controllable-chains.ts';

/**
 * The JSON-RPC methods that move time. All chains and the server share one clock, so these methods move it like `PUT
 * /_sandbox/clock`, and everything that is due by the new time happens.
 */

type ClockContext = Pick<
  ControlContext,
  'clock' | 'read' | 'change' | 'runDueJobs' | 'actJobs' | 'finishJobs' | 'eventLog' | 'movedByRpc'
>;

/** How far JSON-RPC clients have moved the clock. */
export interface MovedByRpc {
  totalMs: number;
  /** For each snapshot, by chain and id: how far the clock had been moved, and the id of the event log. */
  readonly atSnapshots: Map<string, { readonly totalMs: number; readonly eventLog: string }>;
}

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

const MAX_SNAPSHOTS = 10_000;

/** Thrown when a parameter is not a valid time for the clock. */
class RpcTimeError extends Error {
  override readonly name = 'RpcTimeError';
}

/**
 * Runs a method that only moves the clock, and returns its result. Returns undefined for other methods.
 *
 * @throws RpcTimeError
 */
async function moveTime({ method, params }: Call, context: ClockContext): Promise<number | undefined> {
  if (method !== 'evm_increaseTime' && method !== 'anvil_increaseTime') return undefined;
  await moveTo(context.clock.now() + secondsOf(params[0]) * 1000, context);
  return Math.floor(context.movedByRpc.totalMs / 1000);
}

/**
 * Moves the clock as far as a method requires. Called before the chain runs the method.
 *
 * @throws RpcTimeError
 */
async function moveBefore(caip2: string, { method, params }: Call, context: ClockContext): Promise<void> {
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
function noteSnapshot(caip2: string, id: unknown, { movedByRpc, eventLog }: ClockContext): void {
  const { atSnapshots, totalMs } = movedByRpc;
  atSnapshots.set(`${caip2} ${Number(id)}`, { totalMs, eventLog: eventLog() });
  if (atSnapshots.size > MAX_SNAPSHOTS) atSnapshots.delete(atSnapshots.keys().next().value!);
}

async function moveTo(targetMs: number, context: ClockContext): Promise<void> {
  if (targetMs > LAST_MS) throw new RpcTimeError(`expected a time before 9900, got \`${targetMs}\` ms`);
  const { clock, movedByRpc } = context;
  movedByRpc.totalMs += targetMs - clock.now();
  await passTimeTo(targetMs, context);
}

/**
 * Moves the clock back after `evm_revert`.
 *
 * CHOICE: this undoes the moves of the clock by JSON-RPC since the snapshot. It does not undo time that has passed.
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

/** The part of the control plane's context that JSON-RPC needs. */
type RpcContext = Pick<
  ControlContext,
  | ('chains' | 'clock' | 'movedByRpc' | 'eventLog' | 'log')
  | ('read' | 'change' | 'runDueJobs' | 'actJobs' | 'finishJobs')
>;

/** The client that has sent a JSON-RPC message. */
interface RpcSender {
  /** Aborted when the sender disconnects. */
  readonly signal: AbortSignal;
  /** Carries notifications to the client; undefined for plain HTTP. */
  readonly connection?: RpcConnection | undefined;
}

type Response = Record<string, unknown>;

const INVALID_REQUEST = -32_600;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
const SERVER_ERROR = -32_000;
const TIMED_OUT = -32_002;
const TOO_LARGE = -32_003;
const MAX_CALLS = 1_000;

/**
 * CHOICE: the calls in one message may use five seconds of CPU time together. Geth limits the elapsed time, but then
 * short calls would fail on a busy machine.
 */
const MESSAGE_CPU_MS = 5_000;
/** CHOICE: a call that waits for a thread, or for the node of a forked chain, fails after 20 seconds. */
const MESSAGE_MS = 20_000;
/** CHOICE: the responses of one batch have at most 25 million characters together, as in geth by default. */
const MAX_CHARACTERS = 25_000_000;

/** The methods after which jobs may be due. */
const changing = /^(eth_send|evm_|anvil_|hardhat_|sendTransaction$|requestAirdrop$)/;

/** Executes a JSON-RPC 2.0 call, or the calls of a batch in order. */
export async function answerMessage(
  context: RpcContext,
  caip2: string,
  message: unknown,
  sender: RpcSender,
): Promise<Response | Response[]> {
  const caller = { ...sender, isLate: startTimer() };
  if (!Array.isArray(message)) return answer(message);
  if (message.length === 0) return failure(null, INVALID_REQUEST, 'empty batch');
  if (message.length > MAX_CALLS) return failure(null, INVALID_REQUEST, 'batch too large');
  const responses: Response[] = [];
  let characters = 0;
  for (const call of message) {
    const response = characters > MAX_CHARACTERS ? tooLarge(call) : await answer(call);
    characters += JSON.stringify(response).length;
    responses.push(response);
    if (sender.signal.aborted) break;
  }
  return responses;

  async function run(call: {
    readonly method: string;
    readonly params: readonly unknown[];
  }): Promise<object> {
    const moved = await moveTime(call, context);
    if (moved !== undefined) return { result: moved };
    await moveBefore(caip2, call, context);
    const outcome = await context.chains.rpc(caip2, call, caller);
    if ('result' in outcome && call.method === 'evm_snapshot') noteSnapshot(caip2, outcome.result, context);
    if (changing.test(call.method)) await context.runDueJobs();
    return outcome;
  }

  async function answer(call: unknown): Promise<Response> {
    // CHOICE: a call without an id gets a response, too, although JSON-RPC 2.0 calls it a notification.
    const { id = null, method, params = [] } = (call ?? {}) as Record<string, unknown>;
    if (!isReturnable(id)) {
      const expected = 'invalid request: expected `id` as a string, or as a number up to 2^53 - 1';
      return failure(null, INVALID_REQUEST, expected);
    }
    if (typeof method !== 'string' || !Array.isArray(params)) {
      const expected = 'invalid request: expected `method` as a string and `params` as an array';
      return failure(id, INVALID_REQUEST, expected);
    }
    if (caller.isLate()) return failure(id, TIMED_OUT, 'request timed out');
    try {
      return { jsonrpc: '2.0', id, ...(await run({ method, params })) };
    } catch (error) {
      if (error instanceof RpcTimeError) return failure(id, INVALID_PARAMS, error.message);
      if (isUnavailable(error)) return failure(id, SERVER_ERROR, (error as Error).message);
      context.log.error({ err: error, method, caip2 }, 'a JSON-RPC call failed');
      return failure(id, INTERNAL_ERROR, 'internal error');
    }
  }
}

/** Returns whether a response can have exactly this id. Parsing has rounded larger numbers. */
function isReturnable(id: unknown): boolean {
  if (typeof id === 'number') return Math.abs(id) <= Number.MAX_SAFE_INTEGER;
  return typeof id === 'string' || id === null;
}

/** Returns a function that tells whether a message has used up its time. */
function startTimer(): () => boolean {
  const usedMs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  const [startMs, usedAtStartMs] = [performance.now(), usedMs()];
  return () => performance.now() - startMs > MESSAGE_MS || usedMs() - usedAtStartMs > MESSAGE_CPU_MS;
}

function tooLarge(call: unknown): Response {
  const { id = null } = (call ?? {}) as Record<string, unknown>;
  return failure(id, TOO_LARGE, 'response too large');
}

/** Builds a JSON-RPC 2.0 error response. */
function failure(id: unknown, code: number, message: string): Response {
  return { jsonrpc: '2.0', id, error: { code, message } };
}
