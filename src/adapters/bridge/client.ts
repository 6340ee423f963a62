import { hash } from 'node:crypto';
import {
  BrokenCircuitError,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleType,
  handleWhen,
  retry,
  wrap,
} from 'cockatiel';
import { decimalText, readDecimal } from '../../engine/assets/decimal.ts';
import { tracedFetch } from '../../observability/measured.ts';
import type { FiatRefusal } from '../../ports/fiat.ts';
import type { Clock, Log } from '../../ports/runtime.ts';
import { ProviderUnavailableError, readBoundedText } from '../outside-services.ts';

/** The access to one environment of a Bridge-style service. */
interface BridgeAccess {
  /** The URL with the API version: `https://…/v0`. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

interface BridgeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path after the base URL. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
}

/** An object as the service returns it. */
export type BridgeObject = Readonly<Record<string, unknown>>;

/** A refusal of the service. It does not contain the service's message, which may repeat submitted data. */
interface BridgeRefusal {
  readonly status: number;
  /** The service's error code, e.g. `invalid_parameters`. */
  readonly code: string;
  /** The refused members of the body, as paths with dots. */
  readonly members: readonly string[];
  /** The id of the object that exists already, if that is the reason. */
  readonly existingId: string | undefined;
}

type BridgeAnswer = { readonly value: BridgeObject } | { readonly refusal: BridgeRefusal };

/**
 * Calls the service. All methods throw ProviderUnavailableError when they cannot reach it or its response is invalid.
 */
export interface BridgeClient {
  get(path: readonly string[], query?: BridgeRequest['query']): Promise<BridgeAnswer>;
  put(path: readonly string[], body: object): Promise<BridgeAnswer>;
  delete(path: readonly string[]): Promise<BridgeAnswer>;
  /** Sends a body. A repetition with the same key and body has no second effect. */
  post(path: readonly string[], body: object, key: string): Promise<BridgeAnswer>;
}

export interface BridgeClientOptions {
  readonly access: BridgeAccess;
  /** The system clock. */
  readonly clock: Clock;
  readonly log: Log;
  /** Overrides for tests. */
  readonly limits?: Partial<Limits>;
}

interface Limits {
  /** The time limit of a response. It is longer for requests with large documents. */
  readonly timeoutMs: number;
  /** The maximum number of attempts after the first one. */
  readonly retries: number;
  readonly firstPauseMs: number;
  /**
   * The longest pause before a retry. If the service returns a longer `Retry-After`, the request fails instead of
   * waiting.
   */
  readonly longestPauseMs: number;
  /** How many consecutive failures open the circuit breaker, and how long it stays open. */
  readonly failures: number;
  readonly breakMs: number;
}

const defaultLimits: Limits = {
  timeoutMs: 8_000,
  retries: 2,
  firstPauseMs: 200,
  longestPauseMs: 2_000,
  failures: 5,
  breakMs: 10_000,
};

const MAX_ANSWER_BYTES = 1024 * 1024;
/**
 * CHOICE: the time limit grows by this much per MiB of the body, so that documents can be sent over slow connections.
 */
const UPLOAD_MS_PER_MIB = 2_000;

/** Thrown when the service cannot be reached. `retryAfterMs` is set if the service gave a time. */
class BridgeUnavailableError extends ProviderUnavailableError {
  readonly retryAfterMs: number | undefined;
  /** Whether an immediate second attempt may succeed. */
  readonly isPassing: boolean;

  constructor(
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined; readonly isPassing: boolean },
  ) {
    super(message, options);
    this.name = 'BridgeUnavailableError';
    this.retryAfterMs = options.retryAfterMs;
    this.isPassing = options.isPassing;
  }
}

/**
 * Creates a client with its own circuit breaker. All requests are idempotent, and a POST by its key, so failed
 * requests are retried.
 */
export function createBridgeClient({ access, clock, log, limits: given }: BridgeClientOptions): BridgeClient {
  const limits = { ...defaultLimits, ...given };
  const host = new URL(access.baseUrl).host;
  const breaker = circuitBreaker(handleType(ProviderUnavailableError), {
    halfOpenAfter: limits.breakMs,
    breaker: new ConsecutiveBreaker(limits.failures),
  });
  breaker.onBreak(() => log.warn({ host }, 'fiat provider is failing; circuit breaker opened'));
  breaker.onReset(() => log.info({ host }, 'fiat provider responds again; circuit breaker closed'));
  const policy = wrap(retryOf(limits), breaker);
  const call = async (request: BridgeRequest, key?: string): Promise<BridgeAnswer> => {
    try {
      return await policy.execute(() => send(access, request, { key, limits }));
    } catch (cause) {
      if (!(cause instanceof BrokenCircuitError)) throw cause;
      throw new ProviderUnavailableError(`${host}: circuit breaker open after repeated failures`, { cause });
    }
  };
  return {
    get: (path, query = {}) => call({ method: 'GET', path, query }),
    put: (path, body) => call({ method: 'PUT', path, body }),
    delete: (path) => call({ method: 'DELETE', path }),
    async post(path, body, key) {
      const request: BridgeRequest = { method: 'POST', path, body };
      const answer = await call(request, keyText(key));
      // NOTE: the service stores a key for 24 hours and refuses it afterwards, and our keys never change. So a refused
      // key was used more than a day ago, and its result, if any, was lost. The request is sent again under a key of
      // today.
      if (!('refusal' in answer) || answer.refusal.status !== 422) return answer;
      const day = Math.floor(clock.now() / 86_400_000);
      return call(request, keyText(`${key} ${day}`));
    },
  };
}

/**
 * Returns the idempotency key as the service gets it: a hash with the length of a UUID, because our keys contain ids
 * and may be long.
 */
function keyText(key: string): string {
  return hash('sha256', `custos bridge ${key}`).slice(0, 32);
}

function retryOf(limits: Limits) {
  const isWorthwhile = (error: unknown): boolean =>
    error instanceof BridgeUnavailableError &&
    error.isPassing &&
    (error.retryAfterMs ?? 0) <= limits.longestPauseMs;
  return retry(handleWhen(isWorthwhile), {
    maxAttempts: limits.retries,
    backoff: new DelegateBackoff(({ attempt, result }) => {
      const asked = 'error' in result ? (result.error as BridgeUnavailableError).retryAfterMs : undefined;
      return asked ?? limits.firstPauseMs * 2 ** (attempt - 1);
    }),
  });
}

// NOTE: messages contain neither bodies nor paths, which contain personal data and ids.
async function send(
  { baseUrl, apiKey }: BridgeAccess,
  { method, path, query = {}, body }: BridgeRequest,
  { key, limits }: { readonly key: string | undefined; readonly limits: Limits },
): Promise<BridgeAnswer> {
  const url = new URL(`${baseUrl}/${path.map(encodeURIComponent).join('/')}`);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const uploadMs = Math.ceil(((payload?.length ?? 0) / 1_048_576) * UPLOAD_MS_PER_MIB);
  let status: number;
  let retryAfter: string | null;
  let text: string | undefined;
  try {
    const response = await tracedFetch(url, {
      span: `fiat provider ${path[0] ?? ''}`,
      method,
      headers: {
        'api-key': apiKey,
        accept: 'application/json',
        ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(payload === undefined ? {} : { body: payload }),
      // Follow no redirect, because the operator has configured only this address.
      redirect: 'error',
      signal: AbortSignal.timeout(limits.timeoutMs + uploadMs),
    });
    status = response.status;
    retryAfter = response.headers.get('retry-after');
    text = await readBoundedText(response, MAX_ANSWER_BYTES);
  } catch (error) {
    // The error is not attached as a cause, because errors of `fetch` may quote headers.
    throw new BridgeUnavailableError(`${url.host}: no complete response (${reasonOf(error)})`, {
      isPassing: true,
    });
  }
  return answerOf(url.host, { status, retryAfter, text });
}

const SECONDS = /^\d{1,6}$/;

function answerOf(
  host: string,
  {
    status,
    retryAfter,
    text,
  }: { readonly status: number; readonly retryAfter: string | null; readonly text: string | undefined },
): BridgeAnswer {
  const isBusy = status === 429 || status === 408 || status === 409 || status >= 500;
  // 401 and 403 are about the server's API key, which the caller cannot change.
  if (isBusy || status === 401 || status === 403 || (status >= 300 && status < 400)) {
    throw new BridgeUnavailableError(`${host}: status ${status}`, {
      isPassing: isBusy,
      retryAfterMs: retryAfter !== null && SECONDS.test(retryAfter) ? Number(retryAfter) * 1000 : undefined,
    });
  }
  if (text === undefined) {
    const message = `${host}: expected a response of at most ${MAX_ANSWER_BYTES} bytes`;
    throw new BridgeUnavailableError(message, { isPassing: false });
  }
  const value = parse(text);
  if (status < 300) {
    if (value !== undefined) return { value };
    throw new BridgeUnavailableError(`${host}: expected a JSON object`, { isPassing: false });
  }
  return { refusal: refusalOf(status, value ?? {}) };
}

const CODE = /^[a-z0-9_]{1,64}$/i;
const MEMBER = /^[a-z0-9_]{1,64}(\.[a-z0-9_]{1,64}|\[\d{1,3}\]){0,5}$/i;

function refusalOf(status: number, { code, source, id }: BridgeObject): BridgeRefusal {
  const { key } = (source ?? {}) as { key?: unknown };
  const names = typeof key === 'string' ? key.split(',') : Object.keys((key ?? {}) as object);
  return {
    status,
    code: typeof code === 'string' && CODE.test(code) ? code : 'unknown',
    members: names.map((name) => name.trim()).filter((name) => MEMBER.test(name)),
    existingId: typeof id === 'string' ? id : undefined,
  };
}

/** Parses an object. An empty body is an empty object. Returns undefined for anything else. */
function parse(text: string): BridgeObject | undefined {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as BridgeObject)
      : undefined;
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : name;
}

// The functions below read the service's responses. A response that they do not accept counts as an unavailable
// service.

/**
 * Returns a member that must be a non-empty string.
 *
 * @throws ProviderUnavailableError
 */
export function requireText(object: BridgeObject, name: string): string {
  const value = object[name];
  if (typeof value === 'string' && value !== '') return value;
  throw unusable(`expected \`${name}\` in its answer`);
}

export function textOf(object: BridgeObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a nested object, or an empty one if the member is not an object. */
export function objectOf(object: BridgeObject, name: string): BridgeObject {
  const value = object[name];
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as BridgeObject) : {};
}

/** Returns the objects of a list, or an empty list if the member is not a list. */
export function objectsOf(object: BridgeObject, name: string): readonly BridgeObject[] {
  const value = object[name];
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is BridgeObject => typeof item === 'object' && item !== null);
}

/** Returns the strings in a list, or an empty list if the member is not a list. */
export function textsOf(object: BridgeObject, name: string): readonly string[] {
  const value = object[name];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/**
 * Requires that a response is about the requested object.
 *
 * @throws ProviderUnavailableError
 */
export function requireSame(object: BridgeObject, name: string, expected: string): void {
  if (object[name] !== expected) throw unusable(`its answer is about another \`${name}\``);
}

/**
 * Requires that the fee in a response, if any, is the requested fee.
 *
 * @throws ProviderUnavailableError
 */
export function requireFee(object: BridgeObject, name: string, expected: string): void {
  const said = textOf(object, name);
  const fee = said === undefined ? undefined : readDecimal(said);
  if (said === undefined || (fee !== undefined && decimalText(fee) === plainDecimal(expected))) return;
  throw unusable(`its answer has another \`${name}\``);
}

/** Returns the shortest spelling of a decimal number. */
export function plainDecimal(text: string): string {
  const value = readDecimal(text);
  if (value === undefined) throw new Error('expected a decimal number');
  return decimalText(value);
}

/**
 * Returns the object of a response to a request that the service has no reason to refuse.
 *
 * @throws ProviderUnavailableError
 */
export function requireValue(answer: BridgeAnswer): BridgeObject {
  if ('value' in answer) return answer.value;
  throw unusable(`status ${answer.refusal.status} (\`${answer.refusal.code}\`)`);
}

/** Returns the object of a response; undefined if the service has none with this id. */
export function valueIfFound(answer: BridgeAnswer): BridgeObject | undefined {
  return 'refusal' in answer && answer.refusal.status === 404 ? undefined : requireValue(answer);
}

/** Converts a refusal to the port's format. `pointerOf` converts the name of a member of the request to a pointer. */
export function refusal(
  { code, members }: BridgeRefusal,
  fault: FiatRefusal['fault'],
  pointerOf: (member: string) => string | undefined = () => undefined,
): FiatRefusal {
  const pointer = members.map(pointerOf).find((each) => each !== undefined);
  const message = `the provider refuses this (\`${code}\`)`;
  return { fault, message, ...(pointer === undefined ? {} : { pointer }) };
}

/** Creates the error for a response that differs from the service's documentation. */
export function unusable(what: string): ProviderUnavailableError {
  return new ProviderUnavailableError(`the provider cannot be used: ${what}`);
}
