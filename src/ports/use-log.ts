/** That a wallet was used, as it is recorded. */
export interface UseRecord {
  readonly appId: string;
  readonly walletId: string;
  /** The operation by its id. */
  readonly operation: string;
  /** The method as policies name it. */
  readonly method: string;
  readonly requestId: string;
  /** Unix ms. */
  readonly judgedAtMs: number;
  /** JSON array of the policies that judged. */
  readonly policyIds: string;
  /** The request's body as JSON; null when it is too large to be kept. */
  readonly request: string | null;
}

/** Takes the records of allowed uses of wallets and stores them soon. */
export interface UseLog {
  /** Takes the record of a use whose transaction is committed. Waits, and may reject, only while too many wait. */
  add(record: UseRecord): Promise<void> | undefined;
  /** Resolves when everything is stored that was taken before. */
  flush(): Promise<void>;
}
