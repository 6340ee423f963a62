import { tracedFetch } from '../../observability/measured.ts';
import { ChainUnavailableError, readBoundedText } from '../outside-services.ts';

/**
 * The maximum size of a response, because parsing blocks the thread. Only responses with the content of blocks may be
 * larger.
 */
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_BLOCK_BYTES = 16 * 1024 * 1024;
const BLOCK_METHODS: ReadonlySet<string> = new Set([
  'eth_getBlockByNumber',
  'eth_getBlockByHash',
  'eth_getLogs',
]);
/** 2^256 has 78 decimal digits; parsing much longer numbers takes seconds. */
const MAX_DIGITS = 80;
const MAX_DEPTH = 32;
/** Every number with fewer digits is a safe integer. */
const SAFE_DIGITS = 15;

/** Messages of nodes are searched and logged, so longer ones are cut off. */
const MAX_MESSAGE_CHARACTERS = 2_048;

/** Cuts a string from a node to the maximum length. */
export function cutText(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARACTERS);
}

/** Thrown when a node returns a JSON-RPC error. `data` is not validated. */
export class NodeError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(cutText(message));
    this.name = 'NodeError';
    this.code = code;
    this.data = data;
  }
}

/**
 * Thrown when the content of a block does not fit into a response. The node is not at fault, so no other node is
 * tried.
 */
class AnswerTooLargeError extends Error {
  constructor(method: string, maxBytes: number) {
    super(`expected a response to ${method} of at most ${maxBytes} bytes`);
    this.name = 'AnswerTooLargeError';
  }
}

// The codes of overloaded nodes. -32603 is not one of them, because nodes also return it for transactions that they
// refuse.
const OVERLOADED = new Set([-32005, -32016, 429]);

/**
 * Calls one node.
 *
 * @throws NodeError for a JSON-RPC error.
 * @throws ChainUnavailableError without a JSON-RPC response.
 * @throws AnswerTooLargeError for a block beyond the limit.
 */
export async function callNode(
  url: string,
  call: { readonly method: string; readonly params: readonly unknown[]; readonly timeoutMs: number },
): Promise<unknown> {
  const { method, params, timeoutMs } = call;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const isWhole = method === 'eth_getLogs' || (method === 'eth_getBlockByNumber' && params[1] === true);
  const maxBytes = BLOCK_METHODS.has(method) ? MAX_BLOCK_BYTES : MAX_ANSWER_BYTES;
  const answer = await post(url, body, { timeoutMs, maxBytes, method });
  if (answer === undefined) {
    if (isWhole) throw new AnswerTooLargeError(method, maxBytes);
    throw unavailable(url, `expected a response of at most ${maxBytes} bytes`);
  }
  const { error, result } = answer as { error?: unknown; result?: unknown };
  if (error === undefined || error === null) {
    if (result === undefined) throw unavailable(url, 'expected a result or an error in the response');
    return result;
  }
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const refusal = new NodeError(Number(code), String(message), data);
  // Some nodes use an overload code for a response that would be too large. Another node would refuse it as well, so do
  // not retry.
  const isOverloaded = OVERLOADED.has(refusal.code) && !(isWhole && isTooMuch(refusal));
  if (isOverloaded) throw unavailable(url, 'the node is overloaded or limits requests', refusal);
  throw refusal;
}

/**
 * Returns whether an error means that the response would be too large. Nodes have no common code for this error, so the
 * words of Geth, Erigon, Nethermind, Alchemy, Infura and QuickNode are searched.
 */
export function isTooMuch(error: unknown): boolean {
  if (error instanceof AnswerTooLargeError) return true;
  const said = error instanceof NodeError ? error.message : '';
  return /more than \d+ (results|logs)|response size|too many (results|logs)|max results/i.test(said);
}

/** Returns the name of a node in messages. It is only the host, because the path may contain an API key. */
export function nameOfNode(url: string): string {
  return new URL(url).host;
}

function unavailable(url: string, what: string, cause?: unknown): ChainUnavailableError {
  const mayHaveArrived = !NOT_CONNECTED.has(connectionFault(cause) ?? '');
  return new ChainUnavailableError(`${nameOfNode(url)}: ${what}`, { cause, mayHaveArrived });
}

/** The codes of errors that occur before anything is sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'],
]);

function connectionFault(error: unknown): string | undefined {
  const { code } = ((error as Error | undefined)?.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/**
 * Sends a call and returns the parsed response; undefined if the response is longer than `maxBytes`.
 *
 * NOTE: messages must not contain bodies or URLs, which may include signed bytes and API keys.
 */
async function post(
  url: string,
  body: string,
  {
    timeoutMs,
    maxBytes,
    method,
  }: { readonly timeoutMs: number; readonly maxBytes: number; readonly method: string },
): Promise<object | undefined> {
  let status: number;
  let text: string | undefined;
  try {
    const response = await tracedFetch(url, {
      span: `node ${method}`,
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      // Follow no redirect, because the operator has configured only this address.
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    status = response.status;
    text = await readBoundedText(response, maxBytes);
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    throw unavailable(url, isTimeout ? `no response within ${timeoutMs} ms` : 'no connection', error);
  }
  if (text === undefined) return undefined;
  const answer = parse(text);
  // The status is ignored, because some nodes return JSON-RPC errors with a 4xx or 5xx status.
  if (answer === undefined) throw unavailable(url, `status ${status} without a JSON-RPC response`);
  return answer;
}

function parse(text: string): object | undefined {
  const { depth, digits } = measure(text);
  if (depth > MAX_DEPTH || digits > MAX_DIGITS) return undefined;
  try {
    const value: unknown = JSON.parse(text, digits > SAFE_DIGITS ? exactNumber : undefined);
    const isAnswer = typeof value === 'object' && value !== null && ('result' in value || 'error' in value);
    return isAnswer ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Measures the nesting of JSON text and the digits of its longest number, without parsing it. */
function measure(text: string): { readonly depth: number; readonly digits: number } {
  let [depth, open, digits, run] = [0, 0, 0, 0];
  let isInText = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    const isDigit = !isInText && character >= '0' && character <= '9';
    run = isDigit ? run + 1 : 0;
    if (run > digits) digits = run;
    if (isInText && character === '\\') at += 1;
    else if (character === '"') isInText = !isInText;
    else if (isInText) continue;
    else if (character === '{' || character === '[') open += 1;
    else if (character === '}' || character === ']') open -= 1;
    if (open > depth) depth = open;
  }
  return { depth, digits };
}

// Parses integers beyond 2^53 as exact bigints, because lamports have 64 bits. (TypeScript's types lack
// `context.source`.)
function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const digits = context?.source ?? '';
  return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}

/*
 * The functions below validate responses of nodes. Node implementations and proxies differ, and an unchecked value
 * could end up as `undefined` in a balance.
 */

/**
 * Refuses a response that does not match the method's definition.
 *
 * @throws ChainUnavailableError always.
 */
export function refuseAnswer(method: string): never {
  throw new ChainUnavailableError(`expected a valid response to ${method} from the node`);
}

/** Parses a 0x quantity of up to 256 bits. */
export function readQuantity(method: string, value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) refuseAnswer(method);
  return BigInt(value);
}

/** Parses 0x data. */
export function readBytes(method: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) refuseAnswer(method);
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}

export function readRecord(method: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) refuseAnswer(method);
  return value as Record<string, unknown>;
}

/** Parses an exact non-negative integer. */
export function readInteger(method: string, value: unknown): bigint {
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) refuseAnswer(method);
  return BigInt(value);
}

export function readText(method: string, value: unknown): string {
  if (typeof value !== 'string') refuseAnswer(method);
  return value;
}

export function readList(method: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) refuseAnswer(method);
  return value;
}
