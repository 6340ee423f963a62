import type { AmountUnit } from '../engine/assets/amount-units.ts';
import type { PolicyDecision } from '../engine/policy/evaluate.ts';
import type { ErrorCode } from '../generated/errors.ts';

/** The part of a request that is at fault. `pointer` is a JSON pointer within the part; empty for the whole part. */
export interface FaultPlace {
  readonly in: 'method' | 'path' | 'query' | 'headers' | 'body';
  readonly pointer: string;
}

/** One thing that is wrong with a request. Member names are those of the control plane, which shows it. */
export interface Problem {
  /** What the problem is about, such as a header or a wallet. */
  readonly subject: string;
  readonly expected: string;
  readonly came: string;
  /** The part of the request that is at fault; null if the state of the sandbox is. */
  readonly at_fault: FaultPlace | null;
  /** Everything about the problem, in sentences. */
  readonly text: string;
  /** One sentence. */
  readonly next_step: string;
}

/** A change of one value in a JSON body, as in RFC 6902. `from` is set only for `move`. */
export interface BodyChange {
  readonly op: 'add' | 'remove' | 'replace' | 'move';
  readonly path: string;
  readonly from?: string | undefined;
  readonly value?: unknown;
}

/** The changes to a recorded request before it is sent again. */
interface RequestChanges {
  /** Whether headers of another brand get the prefix of this sandbox. */
  readonly own_prefix?: boolean;
  /** Whether `service-request-expiry` is set to one minute ahead. */
  readonly fresh_expiry?: boolean;
  readonly fresh_idempotency_key?: boolean;
  readonly method?: string;
  /** The path with its query. */
  readonly path?: string;
  /** Changes of the request's headers. Null removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: readonly BodyChange[];
}

/** How to send a recorded request again. */
export interface Repetition {
  readonly sign_as?: readonly ('alice' | 'bob' | 'carol')[];
  /** Whether the request gets the credentials of the app that the sandbox was started with. */
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

/** Why a request was refused, and how to repair it. */
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
  /** The problems; never empty. */
  readonly problems: readonly Problem[];
  readonly repairs: readonly Repair[];
}

/** The facts about a refused request from which its explanation is derived. */
export interface RefusedRequest {
  readonly method: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** The headers as sent, with names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The `operationId`. Undefined if the request matches none. */
  readonly operation: string | undefined;
  readonly status: number;
  /** The error code. Undefined for a stored error response that was sent without one. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** The parsed body. Undefined if it was not read. */
  readonly body: unknown;
  /** The public keys whose signatures authorized the request, if any did. */
  readonly signers?: ReadonlySet<string> | undefined;
  readonly responseHeaders: Readonly<Record<string, unknown>>;
  /** The value of `clock.now()` when the request arrived, in Unix ms. */
  readonly nowMs: number;
  /** Facts about the resources of the request, read after the refusal. Undefined if none were read. */
  readonly resources?: RefusedResources | undefined;
}

/** Facts about the resources of a refused request, which the explanation cannot read itself. */
export interface RefusedResources {
  /** The names of resources, by their id as the request or the refusal has it. */
  readonly names: ReadonlyMap<string, string>;
  /** Descriptions of the members of key quorums that have no name, by the id of the key quorum. */
  readonly members?: ReadonlyMap<string, string> | undefined;
  /** The units of the running totals to which policies refer, by the id of the aggregation. */
  readonly units?: ReadonlyMap<string, AmountUnit> | undefined;
  /** The wallet that the path or the `address` of the body names, if it is archived. The time is in Unix ms. */
  readonly archived?: { readonly walletId: string; readonly atMs: number } | undefined;
  /** The wallet of the app whose `ext_wal_` id is most similar to that in the path, if no wallet has that id. */
  readonly nearestWallet?: string | undefined;
  /**
   * The decision of the wallet's policy, if a request was refused for lack of funds and the policy denies it as well.
   */
  readonly denial?: PolicyDecision | undefined;
}

/** Reads facts about the resources of a refused request of an app. */
export type ReadResources = (refused: {
  readonly appId: string;
  readonly operation: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly data: RefusedRequest['data'];
  readonly body: unknown;
}) => Promise<RefusedResources>;

/** Explains an error response. Returns undefined if its message needs no explanation. Must not throw. */
export type ExplainRefusal = (refused: RefusedRequest) => Why | undefined;

/** How a server explains refusals. */
export interface Refusals {
  readonly explain: ExplainRefusal;
  /** Whether responses have the explanation as `data.hint`. */
  readonly isHintSent: boolean;
  readonly resources?: ReadResources;
}
