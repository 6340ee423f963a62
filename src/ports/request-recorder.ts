import type { ErrorCode } from '../generated/errors.ts';

/** The reason for a refusal, and what to do about it. */
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
  /** One sentence for the developer of the client. */
  readonly hint: string;
  /** The values that led to the hint. */
  readonly evidence: Readonly<Record<string, unknown>>;
}

/** A refusal as far as the server knows it. */
export interface RefusedRequest {
  readonly method: string;
  /** Without the query, as sent. */
  readonly path: string;
  /** As sent, names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The `operationId`; undefined if the request matches none. */
  readonly operation: string | undefined;
  readonly status: number;
  /** Undefined for a stored refusal that was sent without a code. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** The parsed body; undefined if it was not read. */
  readonly body: unknown;
  /** Headers of the response. */
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** `clock.now()` on arrival, Unix ms. */
  readonly nowMs: number;
}

/** Explains a refusal; undefined if its message says all. Must not throw. */
export type ExplainRefusal = (refused: RefusedRequest) => Why | undefined;

/** What a unit of work stored, besides the change itself. */
export interface StoredEffects {
  readonly events: readonly { readonly id: string; readonly type: string }[];
  /** Ids. */
  readonly transactions: readonly string[];
  /** Ids of the policies that allowed it. */
  readonly policies: readonly string[];
}

/**
 * A request and its response. It refers to what the pipeline has anyway, so that recording it costs little; the log
 * parses and redacts it when it is read.
 */
export interface AnsweredRequest {
  readonly id: string;
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly rawBody: Uint8Array;
  /** `clock.now()` on arrival, Unix ms. */
  readonly receivedAtMs: number;
  /** The time of the machine on arrival, Unix ms. */
  readonly machineMs: number;
  readonly durationMs: number;
  readonly operation: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>> | undefined;
  readonly appId: string | undefined;
  readonly userId: string | undefined;
  readonly signatures: number;
  /** The public keys whose signatures authorized the request. */
  readonly signers: ReadonlySet<string> | undefined;
  readonly effects: readonly StoredEffects[];
  /** 0: the connection was cut before the response. */
  readonly status: number;
  /** The error code, also where it is not sent. */
  readonly code: string | undefined;
  /** In two parts, because joining them takes time. */
  readonly responseHeaders: readonly Readonly<Record<string, unknown>>[];
  readonly responseText: string | undefined;
  readonly why: Why | undefined;
}

/** Called for every answered request. Must not throw. */
export type RecordRequest = (answered: AnsweredRequest) => void;
