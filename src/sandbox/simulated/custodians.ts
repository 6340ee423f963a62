import { hkdfSync } from 'node:crypto';
import { type ChainType, deriveWallet } from '../../engine/signing/chains.ts';
import type { Custodian, Custodians } from '../../ports/cards.ts';

/*
 * SIMULATED custodians: the custodian is part of the sandbox and opens a wallet for every customer whose id
 * does not begin with `unknown`.
 * PRODUCTION: no custodian is connected: 400 `not_supported`.
 * SETTING: none.
 */

const KEY_BYTES = 32;

/** The prefix of customer ids that the simulated custodian does not know. */
const UNKNOWN_CUSTOMER = 'unknown';

/**
 * A custodian in the server's process. It derives keys from wallet ids, so it stores nothing. The keys protect only
 * simulated funds.
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
