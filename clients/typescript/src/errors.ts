import type { KnownCode } from './generated/operations.ts';

/** The server refused the request. `code` is null where the status says enough. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: KnownCode | (string & {}) | null;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  readonly requestId: string | null;
  readonly headers: Headers;

  constructor(response: Response, body: { error?: string; code?: string; data?: Record<string, unknown> }) {
    super(body.error ?? response.statusText);
    this.status = response.status;
    this.code = body.code ?? null;
    this.data = body.data;
    this.requestId = response.headers.get('x-request-id');
    this.headers = response.headers;
  }
}

/** There is no complete answer. The server may have executed the request. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly isTimeout: boolean;

  constructor(cause: unknown) {
    const isTimeout = (cause as Error).name === 'TimeoutError';
    super(isTimeout ? 'the server did not answer in time' : 'the connection failed', { cause });
    this.isTimeout = isTimeout;
  }
}
