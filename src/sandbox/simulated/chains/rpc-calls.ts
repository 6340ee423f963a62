// The JSON-RPC calls of all kinds of chains.

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An open connection, which can send notifications to the client. */
export interface RpcConnection {
  /** Aborted when the connection closes. */
  readonly closed: AbortSignal;
  notify(message: object): void;
}

/** The caller of a JSON-RPC method. */
export interface RpcCaller {
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Returns whether the execution has taken too long and must end. */
  readonly isLate: () => boolean;
  /** Undefined for a call by plain HTTP. */
  readonly connection?: RpcConnection | undefined;
}

/** The JSON-RPC response to one call. */
export type RpcOutcome =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

/**
 * Thrown when a JSON-RPC call must be answered with an error. It has the code and the message that a node of the chain
 * would send.
 */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

export const METHOD_NOT_FOUND = -32_601;
/** The code with which nodes of all kinds report that a limit is exceeded. */
export const LIMIT_EXCEEDED = -32_005;
const INVALID_PARAMS = -32_602;

export function invalid(message: string): RpcError {
  return new RpcError(INVALID_PARAMS, message);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
