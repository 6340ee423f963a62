// Symbols that are not simply the upper-case name.
const symbols: Readonly<Record<string, string>> = { 'usdc.e': 'USDC.e', pathusd: 'pathUSD' };

/** The display symbol of a named asset: `USDC` for `usdc`. */
export function symbolOf(asset: string): string {
  return symbols[asset] ?? asset.toUpperCase();
}
