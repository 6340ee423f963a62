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
