import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ErrorCode } from '../generated/errors.ts';
import type { UnitContext } from './operation-context.ts';
import type { Why } from './refusals.ts';

/** A request with an idempotency key. */
export interface IdempotentRequest {
  readonly appId: string;
  readonly key: string;
  /**
   * A digest of the operation, its path and its body. A request with the same key but another fingerprint is refused.
   */
  readonly fingerprint: string;
  /** The signatures of the request, and the payloads that they may cover. */
  readonly proof: {
    readonly signatures: readonly string[];
    canonicalPayloads(): readonly Uint8Array[];
  };
  /** Unix ms. */
  readonly nowMs: number;
}

/** A response, as it was sent. */
export interface StoredResponse {
  readonly status: number;
  readonly text: string | undefined;
  /** The public keys whose signatures authorized the request. Empty if it needed none. */
  readonly signers: readonly string[];
}

/** Stores one response per app and key for 24 hours. */
export interface Idempotency {
  /**
   * Returns the stored response to an earlier request with this key. If undefined, the caller runs the request and
   * calls `end` when it is done. The same request may begin again, in another transaction.
   *
   * @throws ApiError invalid_data when the key was used with another fingerprint, or when its first use is still in
   * progress; the 401 of the operation when those who authorized the first request did not sign this one.
   */
  begin(em: SqlEntityManager, request: IdempotentRequest): Promise<StoredResponse | undefined>;
  /**
   * Stores the response in the transaction of `em`. An error response overwrites a stored response only if `replaces`
   * is set, which means that both are for the same request.
   */
  keep(
    em: SqlEntityManager,
    request: IdempotentRequest,
    answer: StoredResponse,
    options?: { readonly replaces: boolean },
  ): Promise<void>;
  end(request: IdempotentRequest): void;
}

/** A request with authorization signatures. */
export interface SignedRequest {
  readonly appId: string;
  readonly proof: {
    readonly signatures: readonly string[];
    canonicalPayloads(): readonly Uint8Array[];
    /** Unix ms; undefined if the signatures do not expire. */
    readonly expiryMs: number | undefined;
  };
}

/** The signed payloads of one request, and the response that is returned when they are sent again. */
interface UsedPayloads {
  readonly payloads: readonly Uint8Array[];
  readonly answer: StoredResponse;
}

/** Accepts each signed payload only once, for apps that require it. */
export interface SingleUse {
  /**
   * Returns whether the app accepts signed payloads only once and, if so, the response to the first request that used
   * one of these payloads.
   *
   * @throws the 401 ApiError of the operation when those who authorized the first request did not sign this one.
   */
  begin(
    unit: UnitContext,
    request: SignedRequest,
  ): Promise<{ readonly isRequired: boolean; readonly first?: StoredResponse | undefined }>;
  /**
   * Stores the payloads as used, in the transaction of `em`.
   *
   * @throws StaleReadError when a concurrent request has used one of them.
   * @throws ApiError zero_correct_authorization_signatures when an intent has used one of them.
   */
  keep(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
  /** Replaces the stored response, in the transaction of `em`. */
  replace(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
}

/** The records that a unit of work stored, besides the change itself. */
export interface StoredEffects {
  readonly events: readonly { readonly id: string; readonly type: string }[];
  /** The ids of the stored transactions. */
  readonly transactions: readonly string[];
  /** The ids of the policies that allowed the request. */
  readonly policies: readonly string[];
}

/**
 * A request and its response. It refers to objects that the pipeline already has, so that recording costs little. They
 * are parsed and redacted when the record is read.
 */
export interface AnsweredRequest {
  readonly id: string;
  readonly method: string;
  /** The path and the query as sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Names and values alternate, as sent. */
  readonly rawHeaders: readonly string[];
  readonly rawBody: Uint8Array;
  /** The value of `clock.now()` when the request arrived, in Unix ms. */
  readonly receivedAtMs: number;
  /** The system time when the request arrived, in Unix ms. */
  readonly machineMs: number;
  readonly durationMs: number;
  readonly operation: string | undefined;
  readonly pathParameters: Readonly<Record<string, string>> | undefined;
  readonly appId: string | undefined;
  readonly userId: string | undefined;
  readonly signatures: number;
  /** The public keys whose signatures authorized the request; undefined if no signature authorized it. */
  readonly signers: ReadonlySet<string> | undefined;
  readonly effects: readonly StoredEffects[];
  /** The status. 0 means that the connection was closed before the response. */
  readonly status: number;
  /** The error code, even if the response does not contain it. */
  readonly code: string | undefined;
  /** The headers in two parts, because merging them takes time. */
  readonly responseHeaders: readonly Readonly<Record<string, unknown>>[];
  readonly responseText: string | undefined;
  readonly why: Why | undefined;
}

/** Called for every response. Must not throw. */
export type RecordRequest = (answered: AnsweredRequest) => void;

/** Verifies the access tokens of users when the pipeline checks credentials. */
export interface UserTokens {
  /**
   * Returns the user whom a valid, unexpired token of the app names. Undefined for any other string.
   *
   * @param at `nowMs` is in Unix ms. `isChange` tells whether the request may change something, which is forbidden with
   * a token of a frozen user or a revoked session.
   * @throws ApiError missing_or_invalid_token for such a change.
   */
  verify(
    token: string,
    at: { readonly appId: string; readonly nowMs: number; readonly isChange: boolean },
  ): Promise<{ readonly userId: string; readonly sessionId: string } | undefined>;
}

/** Provides and caches the public keys of customers' token issuers. */
export interface JwksSource {
  /**
   * Returns the entries of the `keys` array at `url`. With `isKidUnknown`, fetches the document again, unless it was
   * fetched moments ago. Rejects when the document cannot be fetched or contains no keys.
   */
  keys(url: string, isKidUnknown?: boolean): Promise<readonly Record<string, unknown>[]>;
}

/** What authentication needs to know about an app. */
export interface AppCredentials {
  readonly id: string;
  /**
   * The SHA-256 of each valid secret (UTF-8), 32 bytes. A plain hash suffices for a secret of 32 random bytes, which no
   * dictionary contains. It takes 2 µs; a password hash would take 100 ms.
   */
  readonly secretHashes: readonly Uint8Array[];
  /** The origins of the web pages that may call operations without a secret. */
  readonly allowedOrigins: readonly string[];
  /** Whether OAuth clients may authenticate as the app without its secret. Default: no. */
  readonly admitsPublicClients?: boolean;
}

/** Finds apps for authentication. */
export interface AppDirectory {
  find(appId: string): Promise<AppCredentials | undefined>;
  /**
   * Returns a counter that increases whenever this process changes an app or one of its secrets. What was cached under
   * an earlier value is out of date.
   */
  generation(): number;
}

/**
 * Rules that are stricter than the specification. Each is an app setting with the same name. The composition defines
 * the defaults.
 */
export interface Safeguards {
  /** Whether archiving a wallet with an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
  /**
   * What a change to the login accounts of a key quorum's member requires: the app secret alone; the app secret and a
   * signature by a live key of the user; or the app secret, and this many hours of waiting before a new account can be
   * used.
   */
  readonly identity_changes: 'app_secret' | 'user_key' | { readonly wait_hours: number };
  /**
   * Whether requests that an owner signs, and intents, must have a `service-request-expiry`. In a request, it may be at
   * most this many seconds ahead.
   */
  readonly require_request_expiry: false | number;
  /** Whether a signed payload is accepted only once. A repeated request then gets the first response. */
  readonly single_use_signatures: boolean;
  /** Whether test accounts can neither log in nor be listed. */
  readonly block_test_logins: boolean;
  /** Whether a test account cannot be linked to a user who belongs to a key quorum. */
  readonly block_linking_test_accounts: boolean;
  /**
   * Whether ALLOW rules for `*` exclude key exports and content that cannot be decoded. Messages and typed data that
   * may be user operations then count as content that cannot be decoded.
   */
  readonly strict_methods: boolean;
  /** Whether a policy with an owner can refer only to condition sets and aggregations of the same owner. */
  readonly policy_parts_require_owner: boolean;
}

/** The fields of a request that fault rules can select by. */
export interface SelectableRequest {
  /** The `operationId`. */
  readonly operation: string;
  readonly appId: string | undefined;
  /** Path and query as sent. */
  readonly target: string;
  readonly rawBody: Uint8Array;
}

/** A fault to inject into one request. Delays are in real time, like the timeouts of clients. */
export type RequestFault = { readonly ruleId: string } & (
  | { readonly effect: 'latency' | 'slow_body'; readonly delayMs: number }
  | { readonly effect: 'cut_before_commit' | 'cut_after_commit' | 'truncated_body' }
  | {
      readonly effect: 'error';
      readonly code: ErrorCode;
      /**
       * The message from the example in the API document; undefined for an error that the document does not contain.
       */
      readonly message: string | undefined;
      readonly data: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly effect: 'rate_limit'; readonly retryAfterSeconds: number }
  | {
      readonly effect: 'respond';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      /** A string is sent as it is, any other value as JSON. Undefined means no body. */
      readonly body?: unknown;
    }
);

/**
 * Returns the fault to inject into a request that is about to be executed. Undefined if no rule selects the request.
 */
export type FindRequestFault = (request: SelectableRequest) => RequestFault | undefined;

/** A transaction that enters the pool of a simulated chain. */
interface SelectableTransaction {
  readonly caip2: string;
  /** Addresses in the notation of the chain type; on EVM chains in lower case. */
  readonly signers: readonly string[];
}

/** A fault to inject into one transaction. Delays follow the clock of the chain. */
export type TransactionFault =
  | { readonly effect: 'revert' | 'drop' }
  | { readonly effect: 'delay'; readonly delayMs: number }
  /** The block is abandoned `blocks` blocks later. */
  | { readonly effect: 'reorganization'; readonly blocks: number };

/** Returns the fault to inject into a transaction that enters a pool. Undefined if no rule selects the transaction. */
export type DrawTransactionFault = (transaction: SelectableTransaction) => TransactionFault | undefined;

/** An event that is delivered to a webhook endpoint. */
export interface SelectableEvent {
  readonly type: string;
  readonly appId: string;
  /** The payload as JSON. */
  readonly payload: string;
}

/** The delay of a delivery, and whether later events of its resource wait for it. */
interface DeliveryDelay {
  readonly delayMs: number;
  readonly keepsOrder: boolean;
}

/** Returns the delay of a new delivery. Undefined if no rule selects the event. */
export type DelayDelivery = (event: SelectableEvent) => DeliveryDelay | undefined;

/** The record of one use of a wallet, as it is stored. */
export interface UseRecord {
  readonly appId: string;
  readonly walletId: string;
  readonly operation: string;
  /** The method in the spelling of policies. */
  readonly method: string;
  readonly requestId: string;
  /** When the policies were evaluated, Unix ms. */
  readonly judgedAtMs: number;
  /** The ids of the evaluated policies, as a JSON array. */
  readonly policyIds: string;
  /** The request body as JSON. Null when it is too large to store. */
  readonly request: string | null;
}

/** Buffers records of allowed wallet uses and stores them in batches. */
export interface UseLog {
  /** Adds the record of a use whose transaction has committed. Waits, and may reject, only while the buffer is full. */
  add(record: UseRecord): Promise<void>;
  /** Resolves once all records added so far are stored. */
  flush(): Promise<void>;
}
