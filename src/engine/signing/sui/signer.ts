import { blake2b } from '@noble/hashes/blake2.js';
import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { bytesTo0xHex, concatBytes } from '../../crypto/encoding.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from '../chain-signer.ts';

const ED25519_FLAG = Uint8Array.of(0x00);

/**
 * Sui accounts: blake2b-256(flag || key). The caller assembles the serialized signature, flag || signature || key.
 * Source: Sui docs, addresses and signatures.
 */
export const suiSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return {
      address: bytesTo0xHex(blake2b(concatBytes(ED25519_FLAG, key), { dkLen: 32 })),
      publicKey: ed25519KeyText(key),
    };
  },
  signPayload: signMessageEd25519,
};
