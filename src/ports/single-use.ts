import type { SqlEntityManager } from '@mikro-orm/sql';
import type { StoredResponse } from './idempotency.ts';

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
    em: SqlEntityManager,
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
