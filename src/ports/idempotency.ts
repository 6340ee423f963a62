import type { SqlEntityManager } from '@mikro-orm/sql';

/** One use of an idempotency key by an app. */
export interface KeyUse {
  readonly appId: string;
  readonly key: string;
  /** Stands for the operation, its path and its body: the same key with another one is refused. */
  readonly fingerprint: string;
  /** Unix ms. */
  readonly nowMs: number;
}

/** An answer as it was sent. */
export interface KeptAnswer {
  readonly status: number;
  readonly text: string | undefined;
}

/** Keeps one answer for each app and key, for 24 hours. */
export interface Idempotency {
  /**
   * The answer kept for this use; undefined when there is none: then the work is the caller's, who calls `end` when it
   * is done.
   *
   * @throws ApiError invalid_data when the key was used with another fingerprint, or its first use is still at work.
   */
  begin(em: SqlEntityManager, use: KeyUse): Promise<KeptAnswer | undefined>;
  /**
   * Writes the answer into the transaction of `em`. A refusal does not overwrite an answer that is kept already, unless
   * it `replaces` the one that the same request has kept.
   */
  keep(
    em: SqlEntityManager,
    use: KeyUse,
    answer: KeptAnswer,
    options?: { readonly replaces: boolean },
  ): Promise<void>;
  end(use: KeyUse): void;
}
