import { type ErrorCode, errorCatalogue } from './generated/errors.ts';

export type { ErrorCode };

interface ApiErrorDetail {
  /** The error that caused this one. It is logged, never sent. */
  cause?: unknown;
  /** Why another system refused, sent to the caller as `cause`. */
  reason?: string;
  /** More information for the caller, sent as `data`. */
  data?: Record<string, unknown>;
  /** Extra response headers, e.g. `retry-after`. */
  headers?: Record<string, string>;
  /** Whether the refusal is stored as the response to repetitions of the request, whatever its code. */
  isFinal?: boolean;
  /**
   * Whether the changes of the request are committed although the request is refused. For example, wrong attempts at a
   * code are counted.
   */
  keepsChanges?: boolean;
}

/**
 * Thrown when what a request has read is outdated, because another transaction has changed it. The request then runs
 * again, as it does after a conflict.
 */
export class StaleReadError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StaleReadError';
  }
}

/**
 * Returns whether the error means that a dependency is unavailable, so that the same request may succeed later.
 * Storage, the key stores and the adapters set `isUnavailable` on such errors; the ORM's wrappers keep them as `cause`.
 */
export function isUnavailable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ((at as { isUnavailable?: boolean }).isUnavailable === true) return true;
  }
  return false;
}

/** Returns whether the error says that a call to the signer, with its evidence, is too large for one message. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof Error && (error as { isTooLarge?: boolean }).isTooLarge === true;
}

/** Returns the name of the unavailable dependency, for an error that `isUnavailable` recognizes. */
export function unavailableThing(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { unavailable } = at as { unavailable?: string };
    if (unavailable !== undefined) return unavailable;
  }
  return 'the database';
}

/** Returns what the nodes of a chain disagree about, as a message for callers; undefined for any other error. */
export function disagreementOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return (error as { isDisagreement?: boolean }).isDisagreement === true ? error.message : undefined;
}

/**
 * Thrown when a request is refused. It is the only error that the domain throws to its callers. `code` determines the
 * status and the default message (`x-error-catalogue` in `openapi/common.yaml`). `message` is sent to the caller.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly reason: string | undefined;
  readonly data: Record<string, unknown> | undefined;
  readonly headers: Record<string, string> | undefined;
  readonly isFinal: boolean;
  readonly keepsChanges: boolean;

  constructor(code: ErrorCode, message?: string, detail: ApiErrorDetail = {}) {
    const entry = errorCatalogue[code];
    super(shorten(message ?? entry.message), { cause: detail.cause });
    this.name = 'ApiError';
    this.code = code;
    this.status = entry.status;
    this.reason = detail.reason;
    this.data = detail.data;
    this.headers = detail.headers;
    this.isFinal = detail.isFinal === true;
    this.keepsChanges = detail.keepsChanges === true;
  }

  /** Returns the response body `{error, code?, cause?, data?}`. Internal codes are omitted. */
  toBody(): { error: string; code?: string; cause?: string; data?: Record<string, unknown> } {
    return {
      error: this.message,
      ...(errorCatalogue[this.code].onWire ? { code: this.code } : {}),
      ...(this.reason === undefined ? {} : { cause: this.reason }),
      ...(this.data === undefined ? {} : { data: this.data }),
    };
  }
}

// Longer than any message that does not repeat input.
const MAX_TEXT = 4_000;

/** Cuts a message that repeats a large part of the request, because writing and sending it would take long. */
export function shorten(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

/** Creates the refusal of an operation whose handler is still the generated stub. */
export function notImplemented(operationId: string): ApiError {
  return new ApiError('not_implemented', `the operation \`${operationId}\` is not implemented yet`);
}

/** Creates a 404. It does not reveal whether the resource exists in another app. */
export function notFound(thing: string): ApiError {
  return new ApiError('not_found', `${thing} not found`);
}

/** Creates a 400. Its `Date` is the time that the expiry was compared with, so that a client can correct its clock. */
export function requestExpired(message: string, nowMs: number): ApiError {
  return new ApiError('request_expired', message, { headers: { date: new Date(nowMs).toUTCString() } });
}

/** Creates a 400 that names a field by its JSON pointer into the request body. */
export function invalidField(pointer: string, message: string): ApiError {
  return new ApiError('invalid_data', `${pointer}: ${message}`, {
    data: { issues: [{ in: 'body', pointer: shorten(pointer), message: shorten(message) }] },
  });
}

/** Creates a 400 that names a query parameter. */
export function invalidQuery(name: string, message: string): ApiError {
  return new ApiError('invalid_data', `${name}: ${message}`, {
    data: { issues: [{ in: 'query', pointer: `/${name}`, message: shorten(message) }] },
  });
}

interface LocatedIssue {
  readonly in: string;
  readonly pointer: string;
  readonly message: string;
}

/**
 * Converts an error about a part of the request body, so that its JSON pointers refer to the whole body.
 *
 * @param pointer the JSON pointer to that part.
 */
export function relocateIssues(error: unknown, pointer: string): unknown {
  if (!(error instanceof ApiError) || !Array.isArray(error.data?.issues)) return error;
  const issues = (error.data.issues as LocatedIssue[]).map((issue) =>
    issue.in === 'body' ? { ...issue, pointer: pointer + issue.pointer } : issue,
  );
  const message = error.message.startsWith('/') ? pointer + error.message : error.message;
  return new ApiError(error.code, message, {
    cause: error,
    data: { ...error.data, issues },
    ...(error.headers === undefined ? {} : { headers: error.headers }),
  });
}
