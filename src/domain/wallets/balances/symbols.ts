// Those that are not the name in capitals.
const symbols: Readonly<Record<string, string>> = { 'usdc.e': 'USDC.e', pathusd: 'pathUSD' };

/** The symbol that people know an asset of the contract by: `USDC` for `usdc`. */
export function symbolOf(asset: string): string {
  return symbols[asset] ?? asset.toUpperCase();
}
