import type { ErrorCode } from '../generated/errors.ts';

/** The part of a request that is at fault. `pointer` is a JSON pointer within the part; empty for the whole part. */
export interface FaultPlace {
  readonly in: 'method' | 'path' | 'query' | 'headers' | 'body';
  readonly pointer: string;
}

/** One thing that is wrong with a request. Names are those of the control plane, which shows it. */
export interface Problem {
  /** What the problem is about, such as a header or a wallet. */
  readonly subject: string;
  readonly expected: string;
  readonly came: string;
  /** Null if the state of the sandbox is at fault, not a part of the request. */
  readonly at_fault: FaultPlace | null;
  /** The whole problem in sentences. */
  readonly text: string;
  /** One sentence. */
  readonly next_step: string;
}

/** A change of one value in a JSON body, as in RFC 6902. `from`: only for `move`. */
export interface BodyChange {
  readonly op: 'add' | 'remove' | 'replace' | 'move';
  readonly path: string;
  readonly from?: string | undefined;
  readonly value?: unknown;
}

/** The changes with which a recorded request is sent again. */
interface RequestChanges {
  /** Names headers of another brand by the prefix of this sandbox. */
  readonly own_prefix?: boolean;
  /** The header that limits the time of the request is one minute ahead. */
  readonly fresh_expiry?: boolean;
  readonly fresh_idempotency_key?: boolean;
  readonly method?: string;
  /** The path with its query. */
  readonly path?: string;
  /** Null removes the header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: readonly BodyChange[];
}

/** How a recorded request is sent again. */
export interface Repetition {
  readonly sign_as?: readonly ('alice' | 'bob' | 'carol')[];
  /** With the credentials of the app that the sandbox was started with. */
  readonly as_app?: boolean;
  readonly changes?: RequestChanges;
}

/** A way to repair a problem: an operation to call, a command to run, or the request to send again. */
export type Repair = { readonly title: string } & (
  | {
      readonly kind: 'call';
      readonly operation: string;
      readonly path?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'repeat'; readonly repeat: Repetition }
);

/** The reason of an error response, and how to fix the request. */
export interface Why {
  readonly kind:
    | 'credentials'
    | 'validation'
    | 'signature'
    | 'quorum'
    | 'policy'
    | 'idempotency'
    | 'chain'
    | 'fault'
    | 'not_implemented';
  /** The problems and their next steps, in sentences for the developer of the client. */
  readonly hint: string;
  /** The values that led to the hint. */
  readonly evidence: Readonly<Record<string, unknown>>;
  /** At least one. */
  readonly problems: readonly Problem[];
  readonly repairs: readonly Repair[];
}

/** The facts that the server has about a failed request. */
export interface RefusedRequest {
  readonly method: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** The headers as sent, with names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The `operationId`. Undefined if the request matches none. */
  readonly operation: string | undefined;
  readonly status: number;
  /** Undefined for a stored error response that was sent without a code. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** The parsed body. Undefined if it was not read. */
  readonly body: unknown;
  /** Headers of the response. */
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** The value of `clock.now()` when the request arrived, in Unix ms. */
  readonly nowMs: number;
}

/** Explains an error response. Returns undefined if its message says everything. Must not throw. */
export type ExplainRefusal = (refused: RefusedRequest) => Why | undefined;
