/** An app as the credentials check needs it. */
export interface AppCredentials {
  readonly id: string;
  /**
   * SHA-256 of each secret in force (UTF-8), 32 bytes. A plain hash does for a secret of 32 random bytes: there is
   * no dictionary to try, which is all that a slow password hash would hinder, and it costs 2 µs instead of 100 ms.
   */
  readonly secretHashes: readonly Uint8Array[];
}

/** Where the credentials check looks apps up. */
export interface AppDirectory {
  find(appId: string): Promise<AppCredentials | undefined>;
  /** Grows whenever an app or one of its secrets changes in this process; what was cached before is dropped. */
  generation(): number;
}
