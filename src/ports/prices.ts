/** Prices of assets. */
export interface Prices {
  /** US dollars for one unit as decimal strings, by lower-case symbol; omits symbols without a price. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
