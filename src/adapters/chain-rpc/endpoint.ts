import { ChainUnavailableError } from '../chain-unavailable-error.ts';

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** A JSON-RPC error returned by a node. `data` is the node's, unvalidated. */
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

// Without -32603: nodes also return it for transactions that they refuse.
const OVERLOADED = new Set([-32005, -32016, 429]);

/** Calls one node. Throws NodeError for a JSON-RPC error, ChainUnavailableError without a JSON-RPC response. */
export async function callNode(
  url: string,
  call: { readonly method: string; readonly params: readonly unknown[]; readonly timeoutMs: number },
): Promise<unknown> {
  const { method, params, timeoutMs } = call;
  const answer = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), timeoutMs);
  const { error, result } = answer as { error?: unknown; result?: unknown };
  if (error === undefined || error === null) {
    if (result === undefined) throw unavailable(url, 'expected a result or an error in the response');
    return result;
  }
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const refusal = new NodeError(Number(code), String(message), data);
  if (OVERLOADED.has(refusal.code))
    throw unavailable(url, 'the node is overloaded or limits requests', refusal);
  throw refusal;
}

/** The node's name for messages: the host only, because the path may contain an API key. */
export function nameOfNode(url: string): string {
  return new URL(url).host;
}

function unavailable(url: string, what: string, cause?: unknown): ChainUnavailableError {
  return new ChainUnavailableError(`${nameOfNode(url)}: ${what}`, { cause });
}

// NOTE: messages must not contain bodies or URLs, which may include signed bytes and API keys.
async function post(url: string, body: string, timeoutMs: number): Promise<object> {
  let status: number;
  let text: string;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      // The operator configured this address, not the target of a redirect.
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    status = response.status;
    text = await readText(response);
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    throw unavailable(url, isTimeout ? `no response within ${timeoutMs} ms` : 'no connection', error);
  }
  const answer = parse(text);
  // Only the body counts: some nodes return JSON-RPC errors with a 4xx or 5xx status.
  if (answer === undefined) throw unavailable(url, `status ${status} without a JSON-RPC response`);
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

// Returns integers beyond 2^53 as exact bigints: lamports have 64 bits. (TypeScript's types lack `context.source`.)
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
    if (size > MAX_ANSWER_BYTES) throw new Error(`expected a response of at most ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
