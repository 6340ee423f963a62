import { sha256 } from '@noble/hashes/sha2.js';
import { base58xrp } from '@scure/base';
import { bytesToHex, concatBytes } from '../../crypto/encoding.ts';
import type { ChainSigner } from '../chain-signer.ts';
import { compressedKey, hash160, signDigestCompact } from '../chain-signer.ts';

/**
 * XRP Ledger accounts. `raw_sign` takes the SHA-512Half digest and returns r || s. Source: XRPL docs, address encoding.
 */
export const xrplSigner: ChainSigner = {
  walletKeys(secret) {
    const key = compressedKey(secret);
    return { address: xrplAddress(key), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

/** base58xrp(0x00 || hash160(key) || sha256(sha256(body))[0..4]) */
export function xrplAddress(publicKey: Uint8Array): string {
  const body = concatBytes(Uint8Array.of(0x00), hash160(publicKey));
  return base58xrp.encode(concatBytes(body, sha256(sha256(body)).subarray(0, 4)));
}
