import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ConnectionError, UnexpectedAnswerError } from './errors.ts';
import { type Lists, type Operations, operationTable } from './generated/operations.ts';
import { canonicalPayload, type Signer } from './signing.ts';

export * from './errors.ts';
export type { components, operations } from './generated/api.ts';
export * from './signing.ts';

export interface ClientOptions {
  readonly baseUrl: string;
  readonly appId: string;
  readonly appSecret?: string;
  /** The access token of a user, instead of the secret. */
  readonly userToken?: string;
  /** The first word of the names of headers. Default: `service`. */
  readonly prefix?: string;
  readonly signers?: readonly Signer[];
  /** Default: 3. */
  readonly retries?: number;
  /** The limit of each attempt. Default: 30 seconds. */
  readonly timeoutMs?: number;
  /**
   * How long after its start the server may begin to execute an attempt. A retry may get a later deadline. Default:
   * forever.
   */
  readonly requestExpiryMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => number;
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  readonly newIdempotencyKey?: () => string;
}

export interface CallOptions
  extends Partial<Pick<ClientOptions, 'signers' | 'timeoutMs' | 'requestExpiryMs'>> {
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

export interface PreparedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly payload: string;
  readonly signatures: readonly string[];
}

export type OperationId = keyof Operations;
/** The parameters of the path, the query and the body of an operation. */
export type Input<Id extends OperationId> = Operations[Id]['input'];
/** The body of the answer. */
export type Output<Id extends OperationId> = Operations[Id]['output'];

type Arguments<Id extends OperationId> =
  Partial<Input<Id>> extends Input<Id>
    ? [input?: Input<Id>, options?: CallOptions]
    : [input: Input<Id>, options?: CallOptions];

export type Client = {
  readonly [Id in keyof Operations]: (...args: Arguments<Id>) => Promise<Output<Id>>;
} & {
  /** Iterates over the items of all pages of a list. */
  list<Id extends keyof Lists>(id: Id, ...args: Arguments<Id>): AsyncGenerator<Lists[Id]>;
  /** Returns the request as it would be sent, without sending it. */
  prepare<Id extends OperationId>(id: Id, ...args: Arguments<Id>): Promise<PreparedRequest>;
};

interface AnyInput {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}
interface Operation {
  readonly method: string;
  readonly path: string;
  readonly idempotent?: boolean;
  readonly signed?: boolean;
  readonly expires?: boolean;
}

const MAX_RETRY_AFTER_SECONDS = 60;
const MAX_CLOCK_ERROR_MS = 2000;
// A retry with less time before its deadline gets a new one.
const MIN_TIME_LEFT_MS = 1000;
// A `Date` in the far future must not get deadlines signed that never end.
const MAX_CLOCK_LEAD_MS = 48 * 60 * 60 * 1000;
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

export function createClient(options: ClientOptions): Client {
  const { now = Date.now, random = Math.random, newIdempotencyKey = randomUUID } = options;
  const { sleep = (ms, signal) => pause(ms, undefined, signal && { signal }) } = options;
  const { fetch = globalThis.fetch, prefix = 'service', retries: maxRetries = 3 } = options;
  refuseNoNumbers(options);
  /** How far the clock of the server is ahead. */
  let clockOffsetMs = 0;

  async function prepare(
    operation: Operation,
    input: AnyInput = {},
    call: CallOptions = {},
    idempotencyKey = call.idempotencyKey,
  ): Promise<PreparedRequest> {
    refuseNoNumbers(call);
    const { signers = options.signers ?? [], requestExpiryMs = options.requestExpiryMs } = call;
    const { method } = operation;
    const url = urlOf(options.baseUrl, operation.path, input);
    const headers: Record<string, string> = { [`${prefix}-app-id`]: options.appId };
    if (operation.idempotent) headers[`${prefix}-idempotency-key`] = idempotencyKey ?? newIdempotencyKey();
    if (operation.expires && requestExpiryMs !== undefined)
      headers[`${prefix}-request-expiry`] = String(now() + clockOffsetMs + requestExpiryMs);
    const payload = canonicalPayload({ method, url, body: input.body, headers: { ...headers } });
    const bytes = new TextEncoder().encode(payload);
    const signatures = operation.signed ? await Promise.all(signers.map((signer) => signer.sign(bytes))) : [];
    if (signatures.length > 0) headers[`${prefix}-authorization-signature`] = signatures.join(',');
    const credentials = Buffer.from(`${options.appId}:${options.appSecret}`).toString('base64');
    headers.authorization =
      options.userToken === undefined ? `Basic ${credentials}` : `Bearer ${options.userToken}`;
    if (input.body !== undefined) headers['content-type'] = 'application/json';
    const body = input.body === undefined ? undefined : JSON.stringify(input.body);
    return { method, url, headers, body, payload, signatures };
  }

  async function attempt(
    { method, url, headers, body }: PreparedRequest,
    call: CallOptions,
  ): Promise<unknown> {
    const limit = AbortSignal.timeout(call.timeoutMs ?? options.timeoutMs ?? 30_000);
    const signal = call.signal === undefined ? limit : AbortSignal.any([limit, call.signal]);
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, { method, headers, body: body ?? null, signal, redirect: 'manual' });
      text = await textOf(response);
    } catch (error) {
      if (call.signal?.aborted) throw error;
      throw new ConnectionError(error);
    }
    if (response.status >= 300) throw new ApiError(response, text);
    const type = response.headers.get('content-type')?.split(';')[0];
    if (response.status === 204) return undefined;
    if (type === 'text/csv') return text;
    try {
      if (type === 'application/json') return JSON.parse(text);
    } catch {
      // A proxy can call its page JSON.
    }
    throw new UnexpectedAnswerError(response, url);
  }

  function correctsClock(error: unknown, assumedOffsetMs: number): boolean {
    if (!(error instanceof ApiError) || error.code !== 'request_expired') return false;
    const offset = Date.parse(error.headers.get('date') ?? '') - now();
    // A header without a date is not a number, which compares as false.
    if (!(Math.abs(offset - assumedOffsetMs) > MAX_CLOCK_ERROR_MS && offset <= MAX_CLOCK_LEAD_MS))
      return false;
    clockOffsetMs = offset;
    return true;
  }

  async function perform(
    operation: Operation,
    input: AnyInput = {},
    call: CallOptions = {},
  ): Promise<unknown> {
    const repeatable = operation.idempotent === true || /^(GET|PUT|DELETE)$/.test(operation.method);
    const assumedOffsetMs = clockOffsetMs;
    let request = await prepare(operation, input, call);
    let corrected = false;
    for (let retries = 0; ; ) {
      try {
        return await attempt(request, call);
      } catch (error) {
        const key = request.headers[`${prefix}-idempotency-key`];
        if (!corrected && correctsClock(error, assumedOffsetMs)) {
          corrected = true;
          // The refusal may have used up the key. After a retry, the key stays: an attempt may have been executed.
          request = await prepare(operation, input, call, retries > 0 ? key : undefined);
          continue;
        }
        retries += 1;
        const wait = waitBefore(retries, error, repeatable, random());
        if (retries > maxRetries || wait === undefined) throw error;
        await sleep(wait, call.signal);
        const deadline = Number(request.headers[`${prefix}-request-expiry`]);
        if (deadline - now() - clockOffsetMs < MIN_TIME_LEFT_MS)
          request = await prepare(operation, input, call, key);
      }
    }
  }

  async function* list(id: OperationId, input: AnyInput = {}, call: CallOptions = {}) {
    let query = input.query;
    for (;;) {
      const page = (await perform(operationTable[id], { ...input, ...(query && { query }) }, call)) as {
        next_cursor: string | null;
      };
      yield* Object.values(page).find(Array.isArray) ?? [];
      if (!page.next_cursor) return;
      query = { ...query, cursor: page.next_cursor };
    }
  }

  const named = Object.entries<Operation>(operationTable).map(([id, operation]) => [
    id,
    (input?: AnyInput, call?: CallOptions) => perform(operation, input, call),
  ]);
  return {
    ...Object.fromEntries(named),
    list,
    prepare: (id: OperationId, input?: AnyInput, call?: CallOptions) =>
      prepare(operationTable[id], input, call),
  } as Client;
}

/** With NaN, no comparison would end the retries. */
function refuseNoNumbers(options: Partial<ClientOptions>): void {
  for (const name of ['retries', 'timeoutMs', 'requestExpiryMs'] as const)
    if (options[name] !== undefined && !Number.isFinite(options[name]))
      throw new TypeError(`${name} must be a finite number`);
}

/** Returns the URL as `fetch` sends it, because it is signed. */
function urlOf(baseUrl: string, template: string, { path = {}, query = {} }: AnyInput): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => segmentOf(name, path[name]));
  const url = new URL(baseUrl.replace(/\/$/, '') + filled);
  for (const [name, value] of Object.entries(query))
    for (const item of [value].flat()) if (item !== undefined) url.searchParams.append(name, String(item));
  return url.href;
}

/** Encodes one parameter of a path. `new URL` resolves `..`, so that such an id would address another resource. */
function segmentOf(name: string, value: unknown): string {
  const segment = encodeURIComponent(String(value ?? ''));
  if (/^\.{0,2}$/.test(segment)) throw new TypeError(`${name} cannot be ${JSON.stringify(value)}`);
  return segment;
}

/** Reads a body. */
async function textOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > MAX_RESPONSE_BYTES) throw new Error(`the response exceeds ${MAX_RESPONSE_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** Returns the milliseconds to wait before a retry; undefined if the error is final. */
function waitBefore(retry: number, error: unknown, repeatable: boolean, random: number): number | undefined {
  const status = error instanceof ApiError ? error.status : error instanceof ConnectionError ? 0 : undefined;
  const isSafe =
    status === 429 || status === 503 || ((status === 0 || status === 502 || status === 504) && repeatable);
  if (!isSafe) return undefined;
  const after = error instanceof ApiError ? (error.headers.get('retry-after') ?? '') : '';
  if (/^\d+$/.test(after))
    return Number(after) > MAX_RETRY_AFTER_SECONDS
      ? undefined
      : Number(after) * 1000 + Math.floor(250 * random);
  return Math.floor(Math.min(8000, 500 * 2 ** (retry - 1)) * (0.5 + 0.5 * random));
}
