import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesToHex } from '../../crypto/encoding.ts';
import type { ChainSigner } from '../chain-signer.ts';
import { ed25519KeyText, signMessageEd25519 } from '../signer-parts.ts';

/** NEAR implicit accounts: the key as 64 lower-case hex digits. Source: NEP-071, implicit accounts. */
export const nearSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesToHex(key), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};
