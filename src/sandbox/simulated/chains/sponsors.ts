/**
 * The accounts that sponsor fees on simulated chains. If their balance is too low, the faucet refills them and
 * records the refill as a deposit, so that the total supply stays correct.
 */

/*
 * SIMULATED bundler: with `sponsor: true`, a simulated bundler sends the call and a simulated paymaster pays
 * its gas.
 * PRODUCTION: no bundler is connected: 400 `not_supported` for sponsored requests.
 * SETTING: none.
 *
 * SIMULATED feePayer: with `sponsor: true` on Solana, a simulated account pays the fee.
 * PRODUCTION: no fee payer is connected: 400 `not_supported` for sponsored requests.
 * SETTING: none.
 */

/** The paymaster of every EVM chain. */
export const PAYMASTER_ADDRESS = '0x00000000000000000000000000000000000fa7e5';

/** The account that sends user operations to the entry point, on every EVM chain. */
export const BUNDLER_ADDRESS = '0x0000000000000000000000000000000000b0d1e5';

/** CHOICE: a fixed, public key for the fee payer of every Solana chain, because it protects only simulated funds. */
export const FEE_PAYER_SEED = new Uint8Array(32).fill(0xfa);
export const FEE_PAYER_ADDRESS = '51T5ZJJd816Xi3M3yf81j9AAXsRWJBNTmKystogP5jw9';

/** The chains on which gas is paid in stablecoins, and fee payers take the role of paymasters. */
export const tempoChains: ReadonlySet<string> = new Set(['eip155:4217', 'eip155:42431']);

/** Returns whether the chain has a native asset. Tempo has none. */
export function hasNativeAsset({ chainId }: { readonly chainId: bigint }): boolean {
  return !tempoChains.has(`eip155:${chainId}`);
}
