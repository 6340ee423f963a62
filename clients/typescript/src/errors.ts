import type { KnownCode } from './generated/operations.ts';

/** The server refused the request. `code` is null where the status says enough. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: KnownCode | (string & {}) | null;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  readonly requestId: string | null;
  readonly headers: Headers;

  constructor(response: Response, text: string) {
    const body = bodyOf(text);
    super(body.error ?? response.statusText);
    this.status = response.status;
    this.code = body.code ?? null;
    this.data = body.data;
    this.requestId = response.headers.get('x-request-id');
    this.headers = response.headers;
  }

  /** Says all that a log needs: status, code, message, the hint of a sandbox, and the id of the request. */
  override toString(): string {
    const code = this.code === null ? '' : ` ${this.code}`;
    const hint = this.data?.hint === undefined ? '' : `; hint: ${this.data.hint}`;
    const request = this.requestId === null ? '' : ` (request ${this.requestId})`;
    return `${this.name}: ${this.status}${code}: ${this.message.replace(/\.$/, '')}${hint}${request}`;
  }
}

interface ErrorBody {
  readonly error?: string;
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Returns the body of an error; an empty one if a proxy has answered. */
function bodyOf(text: string): ErrorBody {
  try {
    const body = JSON.parse(text);
    return typeof body?.error === 'string' ? body : {};
  } catch {
    return {};
  }
}

/** A status of success that is not from the API, such as a page of another server at a wrong base URL. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
  readonly status: number;
  readonly contentType: string;
  readonly url: string;

  constructor({ status, headers }: Response, url: string) {
    const contentType = headers.get('content-type')?.split(';')[0] ?? 'without a type';
    super(`${status} ${contentType} from ${url} is not an answer of the API; is the base URL right?`);
    this.status = status;
    this.contentType = contentType;
    this.url = url;
  }
}

/** There is no complete answer. The server may have executed the request. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly isTimeout: boolean;

  constructor(cause: unknown) {
    const isTimeout = (cause as Error).name === 'TimeoutError';
    super(isTimeout ? 'the server did not answer in time' : `the connection failed: ${reasonOf(cause)}`, {
      cause,
    });
    this.isTimeout = isTimeout;
  }
}

// The codes of OpenSSL for a certificate that no trusted authority has signed.
const untrusted = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY|GET)_\w+)$/;

/** Returns the cause in the words of the system: `fetch` itself only says "fetch failed". */
function reasonOf(error: unknown): string {
  const { cause = error } = error as Error;
  const { code, message } = cause as NodeJS.ErrnoException;
  const reason = message || code || String(cause);
  if (code === undefined || !untrusted.test(code)) return reason;
  return `${reason} (${code}). Set NODE_EXTRA_CA_CERTS to the file of the server's certificate authority`;
}
