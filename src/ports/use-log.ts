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
  add(record: UseRecord): Promise<void> | undefined;
  /** Resolves once all records added so far are stored. */
  flush(): Promise<void>;
}
