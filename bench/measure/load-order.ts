/** One request of a load; the same ones are sent again and again in order. */
export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string | undefined;
  /** What the answer must have; anything else counts as wrong. */
  readonly status: number;
}

/** What a load generator is told to do. */
export interface LoadOrder {
  /** `http://127.0.0.1:1234`; connections are spread over all of them. */
  readonly origins: readonly string[];
  /** The certificate authority of HTTPS origins. */
  readonly caPem?: string | undefined;
  readonly connections: number;
  readonly seconds: number;
  readonly requests: readonly LoadRequest[];
}

/** What came of it. */
export interface LoadResult {
  readonly completed: number;
  readonly wrong: number;
  /** The first answer that was not as it must be. */
  readonly firstWrong: string | undefined;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The longest load that is accepted. */
export const MAX_SECONDS = 60;
/** The most connections that are accepted. */
export const MAX_CONNECTIONS = 256;
