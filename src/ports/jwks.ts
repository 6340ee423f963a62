/** Where the public keys of customers' token issuers come from. Answers are kept for a while. */
export interface JwksSource {
  /**
   * The members of the `keys` array at `url`. With `isKidUnknown` the document is fetched anew, unless that was done
   * a moment ago. Rejects when the document cannot be fetched or holds no keys.
   */
  keys(url: string, isKidUnknown?: boolean): Promise<readonly Record<string, unknown>[]>;
}
