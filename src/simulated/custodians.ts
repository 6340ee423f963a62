import { hkdfSync } from 'node:crypto';
import type { Custodian, Custodians } from '../ports/custodians.ts';
import { type ChainType, deriveWallet } from '../signing/chains.ts';

const KEY_BYTES = 32;

/** A customer whose id begins like this is unknown to the simulated custodian. */
const UNKNOWN_CUSTOMER = 'unknown';

/**
 * A custodian in this process. Its keys follow from the wallets' ids, so that it remembers them without a store; they
 * guard nothing but simulated money.
 */
const simulatedCustodian: Custodian = {
  async openWallet({ walletId, userId, chain }) {
    if (userId.startsWith(UNKNOWN_CUSTOMER)) return undefined;
    const chainType: ChainType = chain === 'solana' ? 'solana' : 'ethereum';
    const { address } = await deriveWallet(chainType, keyOf(walletId));
    return { address };
  },
};

function keyOf(walletId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', walletId, 'custos', 'simulated custodian', KEY_BYTES));
}

export const simulatedCustodians: Custodians = {
  find: (provider) => (provider === 'bridge' ? simulatedCustodian : undefined),
};
