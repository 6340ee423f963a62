import type { SqlEntityManager } from '@mikro-orm/sql';
import type { ErrorCode } from '../generated/errors.ts';
import type { UnitContext } from './unit-notes.ts';

/** One use of an idempotency key by an app. */
export interface IdempotencyUse {
  readonly appId: string;
  readonly key: string;
  /** A digest of the operation, its path and its body. The same key with another fingerprint is refused. */
  readonly fingerprint: string;
  /** The signatures of the request, and what they may cover. */
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
  /** The public keys whose signatures authorized the request; empty if it needed none. */
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
   * Stores the response in the transaction of `em`. A refusal does not overwrite a stored response, unless it
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

/** Accepts a signed payload once, for apps whose settings say so. */
export interface SingleUse {
  /**
   * Whether the app accepts signed payloads only once and, if so, the response to the first request that used one of
   * these.
   *
   * @throws ApiError the 401 of the operation when those who authorized the first request did not sign this one.
   */
  begin(
    unit: UnitContext,
    request: SignedRequest,
  ): Promise<{ readonly isRequired: boolean; readonly first?: StoredResponse | undefined }>;
  /**
   * Stores the payloads in the transaction of `em`.
   *
   * @throws StaleReadError when a concurrent request has used one; ApiError zero_correct_authorization_signatures
   * when one was used for an intent.
   */
  keep(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
  /** Replaces the stored response, in the transaction of `em`. */
  replace(em: SqlEntityManager, request: SignedRequest, used: UsedPayloads): Promise<void>;
}

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

/** The records that a unit of work stored, besides the change itself. */
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

/** Verifies the access tokens of users for the credentials check, which runs before there is an operation. */
export interface UserTokens {
  /**
   * The user that a valid, unexpired token of the app names; undefined for any other text.
   *
   * @param at `nowMs`: Unix ms. `isChange`: whether the request may change something, which a token of a frozen user
   * and of a revoked session may not.
   * @throws ApiError missing_or_invalid_token for such a change.
   */
  verify(
    token: string,
    at: { readonly appId: string; readonly nowMs: number; readonly isChange: boolean },
  ): Promise<{ readonly userId: string; readonly sessionId: string } | undefined>;
}

/** Provides the public keys of customers' token issuers. Caches them. */
export interface JwksSource {
  /**
   * The entries of the `keys` array at `url`. `isKidUnknown` fetches the document again, unless it was fetched moments
   * ago. Rejects when the document cannot be fetched or contains no keys.
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
  /** Origins of the web pages that may call operations without a secret. */
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
 * Rules that go beyond the published behaviour. Each is an app setting of the same name; the composition defines the
 * defaults.
 */
export interface Safeguards {
  /** Archiving a wallet that has an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
  /**
   * Who changes the accounts by which a member of a key quorum logs in: the app secret alone; the app secret with a
   * signature of a live key of the user; or the app secret, but a new account cannot be used for so many hours.
   */
  readonly identity_changes: 'app_secret' | 'user_key' | { readonly wait_hours: number };
  /**
   * Requests that an owner signs, and intents, carry a `service-request-expiry`. That of a request is at most so many
   * seconds ahead.
   */
  readonly require_request_expiry: false | number;
  /** A signed payload is accepted once; a repeated request gets the first response. */
  readonly single_use_signatures: boolean;
  /** Test accounts can neither log in nor be listed. */
  readonly block_test_logins: boolean;
  /** A test account cannot be linked to a user who belongs to a key quorum. */
  readonly block_linking_test_accounts: boolean;
  /**
   * ALLOW rules for `*` do not apply to key exports and to what cannot be decoded, and messages and typed data that may
   * be user operations count as such.
   */
  readonly strict_methods: boolean;
  /** A policy with an owner refers only to condition sets and aggregations of the same owner. */
  readonly policy_parts_require_owner: boolean;
}

/** A request, as far as faults select by it. */
export interface SelectableRequest {
  /** The `operationId`. */
  readonly operation: string;
  readonly appId: string | undefined;
  /** Path and query as sent. */
  readonly target: string;
  readonly rawBody: Uint8Array;
}

/** The fault of one request. Delays are in real time, because the timeouts of clients are. */
export type RequestFault = { readonly ruleId: string } & (
  | { readonly effect: 'latency' | 'slow_body'; readonly delayMs: number }
  | { readonly effect: 'cut_before_commit' | 'cut_after_commit' | 'truncated_body' }
  | {
      readonly effect: 'error';
      readonly code: ErrorCode;
      /** As in the example of the document; undefined for an error that it does not document. */
      readonly message: string | undefined;
      readonly data: Readonly<Record<string, unknown>> | undefined;
    }
  | { readonly effect: 'rate_limit'; readonly retryAfterSeconds: number }
);

/** Called for every request that is about to be executed. */
export type FindRequestFault = (request: SelectableRequest) => RequestFault | undefined;

/** A transaction that enters the pool of a simulated chain. */
interface SelectableTransaction {
  readonly caip2: string;
  /** Addresses as the chain notes them; those of EVM chains in lower case. */
  readonly signers: readonly string[];
}

/** The fault of one transaction. Delays follow the clock of the chain. */
export type TransactionFault =
  | { readonly effect: 'revert' | 'drop' }
  | { readonly effect: 'delay'; readonly delayMs: number }
  /** Its block is abandoned `blocks` blocks later. */
  | { readonly effect: 'reorganization'; readonly blocks: number };

/** Called for every transaction that enters a pool. */
export type DrawTransactionFault = (transaction: SelectableTransaction) => TransactionFault | undefined;

/** An event that is delivered to a webhook endpoint. */
export interface SelectableEvent {
  readonly type: string;
  readonly appId: string;
  /** JSON. */
  readonly payload: string;
}

/** The delay of a delivery, and whether later events of its resource wait for it. */
interface DeliveryDelay {
  readonly delayMs: number;
  readonly keepsOrder: boolean;
}

/** Called for every new delivery. */
export type DelayDelivery = (event: SelectableEvent) => DeliveryDelay | undefined;

/** A recorded use of a wallet. */
export interface UseRecord {
  readonly appId: string;
  readonly walletId: string;
  /** operationId. */
  readonly operation: string;
  /** The method in policies' terms. */
  readonly method: string;
  readonly requestId: string;
  /** Unix ms. */
  readonly judgedAtMs: number;
  /** JSON array of the evaluated policies' ids. */
  readonly policyIds: string;
  /** The request body as JSON; null when it is too large to store. */
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
