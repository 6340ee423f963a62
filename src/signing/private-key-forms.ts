import { ed25519PublicKey } from '../crypto/ed25519.ts';
import { bytesToBase58, concatBytes, equalBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { assertSecret, type ChainType } from './chains.ts';
import { InvalidPrivateKeyError } from './signing-errors.ts';

const HEX_DIGITS = utf8ToBytes('0123456789abcdef');

/**
 * Turns imported private-key bytes into a 32-byte secret; the caller wipes it. Every chain accepts 32 bytes, solana
 * also the 64 bytes seed || public key. Throws InvalidPrivateKeyError.
 */
export async function privateKeyFromImport(chainType: ChainType, bytes: Uint8Array): Promise<Uint8Array> {
  const secret = chainType === 'solana' && bytes.length === 64 ? readKeyPair(bytes) : bytes.slice();
  try {
    await assertSecret(chainType, secret);
  } catch (error) {
    secret.fill(0);
    throw error;
  }
  return secret;
}

function readKeyPair(bytes: Uint8Array): Uint8Array {
  const seed = bytes.slice(0, 32);
  if (!equalBytes(ed25519PublicKey(seed), bytes.subarray(32))) {
    seed.fill(0);
    throw new InvalidPrivateKeyError('', 'expected the last 32 bytes to be the public key of the first 32');
  }
  return seed;
}

/**
 * The text form of a secret that other wallets import, as UTF-8; the caller wipes it. On solana base58 of
 * seed || public key, on every other chain 64 lower-case hex digits without 0x.
 */
export function privateKeyForExport(chainType: ChainType, secret: Uint8Array): Uint8Array {
  return chainType === 'solana' ? keyPairText(secret) : hexText(secret);
}

// NOTE: base58 encoding creates a string, which cannot be wiped.
function keyPairText(secret: Uint8Array): Uint8Array {
  const pair = concatBytes(secret, ed25519PublicKey(secret));
  try {
    return utf8ToBytes(bytesToBase58(pair));
  } finally {
    pair.fill(0);
  }
}

function hexText(secret: Uint8Array): Uint8Array {
  const text = new Uint8Array(secret.length * 2);
  for (const [index, byte] of secret.entries()) {
    text[2 * index] = HEX_DIGITS[byte >> 4] ?? 0;
    text[2 * index + 1] = HEX_DIGITS[byte & 0x0f] ?? 0;
  }
  return text;
}
