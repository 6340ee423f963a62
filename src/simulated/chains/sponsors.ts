/*
 * Who pays for others on simulated chains. Both refill themselves from nothing when they could not pay; that stands in
 * the chain's list of transfers as any deposit of the faucet, so that money stays counted.
 */

/** The paymaster of every EVM chain. */
export const PAYMASTER_ADDRESS = '0x00000000000000000000000000000000000fa7e5';

/** CHOICE: the fee payer of every Solana chain signs with the key whose 32 bytes are all 0xfa: it has nothing to keep. */
export const FEE_PAYER_SEED = new Uint8Array(32).fill(0xfa);
export const FEE_PAYER_ADDRESS = '51T5ZJJd816Xi3M3yf81j9AAXsRWJBNTmKystogP5jw9';

/** Chains on which gas is paid in stablecoins, and a fee payer signs in place of a paymaster. */
export const tempoChains: ReadonlySet<string> = new Set(['eip155:4217', 'eip155:42431']);
