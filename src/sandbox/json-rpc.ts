import { isUnavailable } from '../errors.ts';
import type { ControlContext } from './control-plane.ts';
import type { RpcConnection } from './controllable-chains.ts';
import { moveBefore, moveTime, noteSnapshot, RpcTimeError } from './rpc-clock.ts';

/** The part of the control plane's context that JSON-RPC needs. */
export type RpcContext = Pick<
  ControlContext,
  | ('chains' | 'clock' | 'movedByRpc' | 'eventLog' | 'log')
  | ('read' | 'change' | 'runDueJobs' | 'actJobs' | 'finishJobs')
>;

/** The sender of a JSON-RPC message. */
export interface RpcSender {
  /** Aborted when the sender disconnects. */
  readonly signal: AbortSignal;
  /** Carries notifications to the sender; undefined for plain HTTP. */
  readonly connection?: RpcConnection | undefined;
}

type Response = Record<string, unknown>;

const INVALID_REQUEST = -32_600;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
const SERVER_ERROR = -32_000;
const TIMED_OUT = -32_002;
const TOO_LARGE = -32_003;
const MOST_CALLS = 1_000;

/** CHOICE: the calls of one message may run for at most five seconds together, as in geth by default. */
const MESSAGE_MS = 5_000;
/** CHOICE: the responses of one batch have at most 25 million characters together, as in geth by default. */
const MOST_CHARACTERS = 25_000_000;

/** The methods after which jobs may be due. */
const changing = /^(eth_send|evm_|anvil_|hardhat_|sendTransaction$|requestAirdrop$)/;

/** Runs a JSON-RPC 2.0 call, or the calls of a batch in order. */
export async function answerMessage(
  context: RpcContext,
  caip2: string,
  message: unknown,
  sender: RpcSender,
): Promise<Response | Response[]> {
  const caller = { ...sender, endsAtMs: performance.now() + MESSAGE_MS };
  if (!Array.isArray(message)) return answer(message);
  if (message.length === 0) return failure(null, INVALID_REQUEST, 'empty batch');
  if (message.length > MOST_CALLS) return failure(null, INVALID_REQUEST, 'batch too large');
  const responses: Response[] = [];
  let characters = 0;
  for (const call of message) {
    const response = characters > MOST_CHARACTERS ? tooLarge(call) : await answer(call);
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
    const { id = null, method, params = [] } = (call ?? {}) as Record<string, unknown>;
    if (typeof method !== 'string' || !Array.isArray(params)) {
      const expected = 'invalid request: expected `method` as a string and `params` as an array';
      return failure(id, INVALID_REQUEST, expected);
    }
    if (performance.now() >= caller.endsAtMs) return failure(id, TIMED_OUT, 'request timed out');
    try {
      return { jsonrpc: '2.0', id, ...(await run({ method, params })) };
    } catch (error) {
      if (error instanceof RpcTimeError) return failure(id, INVALID_PARAMS, error.message);
      if (isUnavailable(error)) return failure(id, SERVER_ERROR, (error as Error).message);
      context.log.error({ err: error, method, caip2 }, 'a call of JSON-RPC failed');
      return failure(id, INTERNAL_ERROR, 'internal error');
    }
  }
}

function tooLarge(call: unknown): Response {
  const { id = null } = (call ?? {}) as Record<string, unknown>;
  return failure(id, TOO_LARGE, 'response too large');
}

/** Builds a JSON-RPC 2.0 error response. */
function failure(id: unknown, code: number, message: string): Response {
  return { jsonrpc: '2.0', id, error: { code, message } };
}
