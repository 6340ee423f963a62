/** A failure that testers trigger by sending to a sentinel recipient. */
export type Sentinel = 'stuck' | 'replaced' | 'reverted' | 'provider_error';

// By the last four bytes of the recipient's account, independent of the chain's address format.
const sentinels: Readonly<Record<string, Sentinel>> = {
  dead0001: 'stuck',
  dead0002: 'replaced',
  dead0003: 'reverted',
  dead0004: 'provider_error',
};

/** The first sentinel among recipients. `accounts`: their bytes in lower-case hex. */
export function sentinelOf(accounts: readonly string[]): Sentinel | undefined {
  return accounts.map((hex) => sentinels[hex.slice(-8)]).find((found) => found !== undefined);
}
