/** A failure that testers trigger by sending to a special recipient, the sentinel. */
export type Sentinel = 'stuck' | 'replaced' | 'reverted' | 'provider_error';

// The sentinels, by the last four bytes of the recipient's account. So they work with every address format.
const sentinels: Readonly<Record<string, Sentinel>> = {
  dead0001: 'stuck',
  dead0002: 'replaced',
  dead0003: 'reverted',
  dead0004: 'provider_error',
};

/**
 * Finds the first sentinel among recipients. Returns undefined if there is none.
 *
 * @param accounts the bytes of the recipients in lower-case hex.
 */
export function sentinelOf(accounts: readonly string[]): Sentinel | undefined {
  return accounts.map((hex) => sentinels[hex.slice(-8)]).find((found) => found !== undefined);
}
