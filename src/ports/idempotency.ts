import type { SqlEntityManager } from '@mikro-orm/sql';

/** One use of an idempotency key by an app. */
export interface KeyUse {
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
   * The stored response for this use. If undefined, the caller runs the request and calls `end` when it is done. The same
   * use may begin again, in another transaction.
   *
   * @throws ApiError invalid_data when the key was used with another fingerprint, or its first use is still in
   * progress; the 401 of the operation when those who authorized the first request did not sign this one.
   */
  begin(em: SqlEntityManager, use: KeyUse): Promise<StoredResponse | undefined>;
  /**
   * Stores the response in the transaction of `em`. A refusal does not overwrite a stored response, unless it
   * `replaces` that of the same request.
   */
  keep(
    em: SqlEntityManager,
    use: KeyUse,
    answer: StoredResponse,
    options?: { readonly replaces: boolean },
  ): Promise<void>;
  end(use: KeyUse): void;
}
