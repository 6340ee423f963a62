import { ChainUnavailableError } from '../chain-unavailable-error.ts';

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** A node understood the request and refused it. `data` is as the node sent it. */
export class NodeError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.name = 'NodeError';
    this.code = code;
    this.data = data;
  }
}

// -32603 is left out: nodes answer it for transactions that they refuse, too.
const OVERLOADED = new Set([-32005, -32016, 429]);

/** One call to one node. Throws NodeError, or ChainUnavailableError when there is no such answer. */
export async function callNode(
  url: string,
  call: { readonly method: string; readonly params: readonly unknown[]; readonly timeoutMs: number },
): Promise<unknown> {
  const { method, params, timeoutMs } = call;
  const answer = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), timeoutMs);
  const { error, result } = answer as { error?: unknown; result?: unknown };
  if (error === undefined || error === null) {
    if (result === undefined) throw unavailable(url, 'the answer holds neither a result nor an error');
    return result;
  }
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const refusal = new NodeError(Number(code), String(message), data);
  if (OVERLOADED.has(refusal.code)) throw unavailable(url, 'the node asks for fewer requests', refusal);
  throw refusal;
}

/** The node's name in messages: keys of providers stand in the path. */
export function nameOfNode(url: string): string {
  return new URL(url).host;
}

function unavailable(url: string, what: string, cause?: unknown): ChainUnavailableError {
  return new ChainUnavailableError(`${nameOfNode(url)}: ${what}`, { cause });
}

// NOTE: neither bodies nor URLs are ever part of a message: they hold signed bytes and keys.
async function post(url: string, body: string, timeoutMs: number): Promise<object> {
  let status: number;
  let text: string;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      // The address was configured by an operator; where it points to elsewhere was not.
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    status = response.status;
    text = await readText(response);
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    throw unavailable(url, isTimeout ? `no answer within ${timeoutMs} ms` : 'no connection', error);
  }
  const answer = parse(text);
  // Some nodes send refusals with a status of 4xx or 5xx; what counts is the body.
  if (answer === undefined) throw unavailable(url, `status ${status} without a JSON-RPC answer`);
  return answer;
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text, exactNumber);
    const isAnswer = typeof value === 'object' && value !== null && ('result' in value || 'error' in value);
    return isAnswer ? value : undefined;
  } catch {
    return undefined;
  }
}

// Whole numbers beyond 2^53 stay exact, as bigints: lamports are 64 bits. (The compiler does not know `source` yet.)
function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const digits = context?.source ?? '';
  return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
