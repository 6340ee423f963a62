/** Provides the public keys of customers' token issuers. Caches them. */
export interface JwksSource {
  /**
   * The entries of the `keys` array at `url`. `isKidUnknown` fetches the document again, unless it was fetched moments
   * ago. Rejects when the document cannot be fetched or contains no keys.
   */
  keys(url: string, isKidUnknown?: boolean): Promise<readonly Record<string, unknown>[]>;
}
