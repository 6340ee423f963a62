/** What assets are worth. */
export interface Prices {
  /** Decimal strings of US dollars for one unit, by lower-case symbol; what has no price is left out. */
  inUsd(symbols: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
