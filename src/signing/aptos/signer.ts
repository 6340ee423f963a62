import { sha3_256 } from '@noble/hashes/sha3.js';
import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesTo0xHex, concatBytes } from '../../crypto/encoding.ts';
import type { ChainSigner } from '../chain-signer.ts';
import { ed25519KeyText, signMessageEd25519 } from '../signer-parts.ts';

const SINGLE_ED25519 = Uint8Array.of(0x00);

/**
 * Aptos accounts. Movement uses the same address and transaction format.
 * `raw_sign` takes the signing message (prefix hash || BCS), not a digest. Source: AIP-40, single-signer
 * authentication.
 */
export const aptosSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return { address: bytesTo0xHex(aptosAccount(key)), publicKey: ed25519KeyText(key) };
  },
  signPayload: signMessageEd25519,
};

/** sha3-256(key || 0x00), the account of a never-rotated ed25519 key, 32 bytes. */
export function aptosAccount(publicKey: Uint8Array): Uint8Array {
  return sha3_256(concatBytes(publicKey, SINGLE_ED25519));
}
