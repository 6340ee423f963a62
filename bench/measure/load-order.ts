/** One request of a load. All requests are sent in order, repeatedly. */
export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string | undefined;
  /** The expected status; any other counts as wrong. */
  readonly status: number;
}

/** An order to the load generator. */
export interface LoadOrder {
  /** `http://127.0.0.1:1234`; connections are spread over all of them. */
  readonly origins: readonly string[];
  /** The certificate authority of HTTPS origins. */
  readonly caPem?: string | undefined;
  readonly connections: number;
  readonly seconds: number;
  readonly requests: readonly LoadRequest[];
  /** Requests a second over all connections; as many as are answered when left out. */
  readonly perSecond?: number;
  /** A status by which the server refuses requests that it does not admit, with the header `Retry-After`. */
  readonly refusedStatus?: number;
  /** How long responses are not counted at the beginning. */
  readonly unmeasuredSeconds?: number;
}

/** The result of an order. */
export interface LoadResult {
  readonly completed: number;
  /** Responses with `refusedStatus`; not among the completed ones. */
  readonly refused: number;
  readonly wrong: number;
  /** The first wrong response. */
  readonly firstWrong: string | undefined;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The longest accepted load. */
export const MAX_SECONDS = 60;
/** The most accepted connections. */
export const MAX_CONNECTIONS = 1_024;
