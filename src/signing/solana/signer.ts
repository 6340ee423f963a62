import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesToBase58 } from '../../crypto/encoding.ts';
import type { ChainSigner } from '../chain-signer.ts';
import { ed25519KeyText, signMessageEd25519 } from '../signer-parts.ts';

/** Solana accounts: the ed25519 public key in base58. */
export const solanaSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToBase58(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};
