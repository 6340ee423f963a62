/** What a recipient can make happen to a transaction, for testers. */
export type Sentinel = 'stuck' | 'replaced' | 'reverted' | 'provider_error';

// By the last four bytes of the recipient's account, whatever the chain's text for it is.
const sentinels: Readonly<Record<string, Sentinel>> = {
  dead0001: 'stuck',
  dead0002: 'replaced',
  dead0003: 'reverted',
  dead0004: 'provider_error',
};

/** The sentinel among recipients; `accounts` are their bytes in lower-case hex. */
export function sentinelOf(accounts: readonly string[]): Sentinel | undefined {
  return accounts.map((hex) => sentinels[hex.slice(-8)]).find((found) => found !== undefined);
}
