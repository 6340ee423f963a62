import { sha256 } from '@noble/hashes/sha2.js';
import { bech32m } from '@scure/base';
import { bytesToHex, concatBytes } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import type { ChainRoom } from './chain-room.ts';
import { encodeDerSignature } from './der-signature.ts';
import { parseMessage } from './fields.ts';
import { compressedKey, signDigestCompact } from './room-parts.ts';

// SparkAddress protobuf: field 1 (bytes), 33 bytes of identity key
const IDENTITY_KEY_FIELD = Uint8Array.of(0x0a, 0x21);
const PREFIX = { mainnet: 'spark', regtest: 'sparkrt' } as const;

/** Spark addresses of the identity key. Source: Spark SDK, address encoding. */
export const sparkRoom: ChainRoom = {
  walletKeys(secret, { sparkNetwork = 'mainnet' }) {
    const key = compressedKey(secret);
    const words = bech32m.toWords(concatBytes(IDENTITY_KEY_FIELD, key));
    return { address: bech32m.encode(PREFIX[sparkNetwork], words, false), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

/**
 * `signMessageWithIdentityKey`: the signature over sha256(UTF-8 message) as hex without 0x, DER or, when
 * `compact`, r || s. Throws InvalidFieldError.
 */
export function signWithIdentityKey(
  secret: Uint8Array,
  params: { readonly message: string; readonly compact?: boolean | undefined },
): string {
  const message = parseMessage(params.message, 'utf-8', '/message');
  const { compact } = ecBackend.sign(sha256(message), secret);
  return bytesToHex(params.compact === true ? compact : encodeDerSignature(compact));
}
