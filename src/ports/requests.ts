import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ErrorCode } from '../generated/errors.ts';
import type { UnitContext } from './operation-context.ts';
import type { Why } from './refusals.ts';

/** One use of an idempotency key by an app. */
export interface IdempotencyUse {
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

/** A response as it was sent. */
export interface StoredResponse {
  readonly status: number;
  readonly text: string | undefined;
  /** The public keys whose signatures authorized the request. Empty if it needed none. */
  readonly signers: readonly string[];
}

/** Stores one response per app and key for 24 hours. */
export interface Idempotency {
  /**
   * The stored response for this use. If undefined, the caller runs the request and calls `end` when it is done. The
   * same use may begin again, in another transaction.
   *
   * @throws ApiError invalid_data when the key was used with another fingerprint, or its first use is still in
   * progress; the 401 of the operation when those who authorized the first request did not sign this one.
   */
  begin(em: SqlEntityManager, use: IdempotencyUse): Promise<StoredResponse | undefined>;
  /**
   * Stores the response in the transaction of `em`. An error response does not overwrite a stored response, unless it
   * `replaces` that of the same request.
   */
  keep(
    em: SqlEntityManager,
    use: IdempotencyUse,
    answer: StoredResponse,
    options?: { readonly replaces: boolean },
  ): Promise<void>;
  end(use: IdempotencyUse): void;
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

/** Accepts each signed payload only once, for apps with this setting. */
export interface SingleUse {
  /**
   * Whether the app accepts signed payloads only once. If so, also returns the response to the first request that
   * used one of these.
   *
   * @throws the 401 ApiError of the operation when those who authorized the first request did not sign this one.
   */
  begin(
    unit: UnitContext,
    request: SignedRequest,
  ): Promise<{ readonly isRequired: boolean; readonly first?: StoredResponse | undefined }>;
  /**
   * Stores the payloads in the transaction of `em`.
   *
   * @throws StaleReadError when a concurrent request has used one.
   * @throws ApiError zero_correct_authorization_signatures when one was used for an intent.
   */
  keep(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
  /** Replaces the stored response, in the transaction of `em`. */
  replace(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
}

/** The records that a unit of work stored, besides the change itself. */
export interface StoredEffects {
  readonly events: readonly { readonly id: string; readonly type: string }[];
  /** Their ids. */
  readonly transactions: readonly string[];
  /** Ids of the policies that allowed it. */
  readonly policies: readonly string[];
}

/**
 * A request and its response. It refers to objects that the pipeline has anyway, so that recording costs little. The
 * log parses and redacts it when it is read.
 */
export interface AnsweredRequest {
  readonly id: string;
  readonly method: string;
  /** The path and the query as sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Names and values in turn, as sent. */
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
  /** The public keys whose signatures authorized the request. */
  readonly signers: ReadonlySet<string> | undefined;
  readonly effects: readonly StoredEffects[];
  /** The status. 0 means that the connection was closed before the response. */
  readonly status: number;
  /** The error code, even if the response does not contain it. */
  readonly code: string | undefined;
  /** The headers in two parts, because joining them takes time. */
  readonly responseHeaders: readonly Readonly<Record<string, unknown>>[];
  readonly responseText: string | undefined;
  readonly why: Why | undefined;
}

/** Called for every response. Must not throw. */
export type RecordRequest = (answered: AnsweredRequest) => void;

/** Verifies the access tokens of users for the credentials check, which runs before the operation is known. */
export interface UserTokens {
  /**
   * Returns the user that a valid, unexpired token of the app names. Undefined for any other text.
   *
   * @param at `nowMs` is in Unix ms. `isChange` tells whether the request may change something, which is forbidden
   * with a token of a frozen user or a revoked session.
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
   * Returns the entries of the `keys` array at `url`. `isKidUnknown` fetches the document again, unless it was
   * fetched moments ago. Rejects when the document cannot be fetched or contains no keys.
   */
  keys(url: string, isKidUnknown?: boolean): Promise<readonly Record<string, unknown>[]>;
}

/** The data of an app that authentication needs. */
export interface AppCredentials {
  readonly id: string;
  /**
   * SHA-256 of each valid secret (UTF-8), 32 bytes. A plain hash is sufficient for a secret of 32 random bytes, which
   * cannot be guessed from a dictionary, and takes 2 µs instead of the 100 ms of a password hash.
   */
  readonly secretHashes: readonly Uint8Array[];
  /** The origins of the web pages that may call operations without a secret. */
  readonly allowedOrigins: readonly string[];
  /** Whether OAuth clients may name the app without its secret. Default: no. */
  readonly admitsPublicClients?: boolean;
}

/** The source of apps for authentication. */
export interface AppDirectory {
  find(appId: string): Promise<AppCredentials | undefined>;
  /** Increases whenever this process changes an app or one of its secrets, which invalidates caches. */
  generation(): number;
}

/**
 * Rules that are stricter than the behaviour in the specification. Each is an app setting of the same name. The
 * composition defines the defaults.
 */
export interface Safeguards {
  /** Whether the archiving of a wallet that has an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
  /**
   * The authorization needed to change the login accounts of a key quorum's member: the app secret alone; the app
   * secret and a signature by a live key of the user; or the app secret, with a waiting period of this many hours
   * before a new account can be used.
   */
  readonly identity_changes: 'app_secret' | 'user_key' | { readonly wait_hours: number };
  /**
   * Whether requests that an owner signs, and intents, must have a `service-request-expiry`. The expiry of a request
   * may be at most this many seconds ahead.
   */
  readonly require_request_expiry: false | number;
  /** Whether a signed payload is accepted only once. A repeated request then gets the first response. */
  readonly single_use_signatures: boolean;
  /** Whether test accounts can neither log in nor be listed. */
  readonly block_test_logins: boolean;
  /** Whether a test account cannot be linked to a user who belongs to a key quorum. */
  readonly block_linking_test_accounts: boolean;
  /**
   * Whether ALLOW rules for `*` do not apply to key exports and to content that cannot be decoded, and messages and
   * typed data that may be user operations count as such content.
   */
  readonly strict_methods: boolean;
  /** Whether a policy with an owner can refer only to condition sets and aggregations of the same owner. */
  readonly policy_parts_require_owner: boolean;
}

/** The fields of a request by which fault rules select it. */
export interface SelectableRequest {
  /** The `operationId`. */
  readonly operation: string;
  readonly appId: string | undefined;
  /** Path and query as sent. */
  readonly target: string;
  readonly rawBody: Uint8Array;
}

/** The fault of one request. Delays are in real time, like the timeouts of clients. */
export type RequestFault = { readonly ruleId: string } & (
  | { readonly effect: 'latency' | 'slow_body'; readonly delayMs: number }
  | { readonly effect: 'cut_before_commit' | 'cut_after_commit' | 'truncated_body' }
  | {
      readonly effect: 'error';
      readonly code: ErrorCode;
      /** The message in the example of the document. Undefined for an error that the document does not contain. */
      readonly message: string | undefined;
      readonly data: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly effect: 'rate_limit'; readonly retryAfterSeconds: number }
  | {
      readonly effect: 'respond';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      /** A text is sent as it is, any other value as JSON. Undefined means no body. */
      readonly body?: unknown;
    }
);

/** Called for every request that is about to be executed. */
export type FindRequestFault = (request: SelectableRequest) => RequestFault | undefined;

/** A transaction that enters the pool of a simulated chain. */
interface SelectableTransaction {
  readonly caip2: string;
  /** The addresses in the notation of the chain type. Those of EVM chains are in lower case. */
  readonly signers: readonly string[];
}

/** The fault of one transaction. Delays follow the clock of the chain. */
export type TransactionFault =
  | { readonly effect: 'revert' | 'drop' }
  | { readonly effect: 'delay'; readonly delayMs: number }
  /** The block is abandoned `blocks` blocks later. */
  | { readonly effect: 'reorganization'; readonly blocks: number };

/** Called for every transaction that enters a pool. */
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

/** Called for every new delivery. */
export type DelayDelivery = (event: SelectableEvent) => DeliveryDelay | undefined;

export interface UseRecord {
  readonly appId: string;
  readonly walletId: string;
  /** operationId. */
  readonly operation: string;
  /** The method in the spelling of policies. */
  readonly method: string;
  readonly requestId: string;
  /** Unix ms. */
  readonly judgedAtMs: number;
  /** The ids of the evaluated policies, as a JSON array. */
  readonly policyIds: string;
  /** The request body as JSON. Null when it is too large to store. */
  readonly request: string | null;
}

/** Buffers records of allowed wallet uses and stores them in batches. */
export interface UseLog {
  /**
   * Adds the record of a use after its transaction has committed. Waits, and may reject, only while the buffer is full.
   */
  add(record: UseRecord): Promise<void>;
  /** Resolves once all records added so far are stored. */
  flush(): Promise<void>;
}
