import { schnorr as noble } from '@noble/curves/secp256k1.js';
import { equalBytes } from './encoding.ts';

/** The curve operations that a Schnorr signature needs. Secrets and scalars are 32 bytes, from 1 to n - 1. */
export interface SchnorrCurve {
  /** 33 bytes: the parity of y, then x. */
  publicKey(secret: Uint8Array): Uint8Array;
  /** n - secret. */
  negateSecret(secret: Uint8Array): Uint8Array;
  /** (secret + tweak) mod n. */
  addToSecret(secret: Uint8Array, tweak: Uint8Array): Uint8Array;
  /** (secret * factor) mod n. */
  multiplySecret(secret: Uint8Array, factor: Uint8Array): Uint8Array;
  /** publicKey + scalar·otherKey, compressed. */
  addMultiple(publicKey: Uint8Array, otherKey: Uint8Array, scalar: Uint8Array): Uint8Array;
}

const EVEN = 0x02;

// CHOICE: zero auxiliary randomness, which BIP-340 allows. Signing takes no random source, and the same request
// always yields the same signature.
const AUXILIARY = new Uint8Array(32);

/** BIP-340 signature, 64 bytes, over a 32-byte digest. */
export function schnorrSignPortable(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  return noble.sign(digest, secret, AUXILIARY);
}

/**
 * The same signature, made with the operations of an accelerated curve. It is verified before it is returned, as
 * BIP-340 recommends, because a faulty signature can reveal the secret. Source: BIP-340, "Default Signing".
 *
 * NOTE: hashes are not reduced mod n. The curve refuses a hash that is zero or at least n (probability 2^-128).
 */
export function schnorrSign(curve: SchnorrCurve, digest: Uint8Array, secret: Uint8Array): Uint8Array {
  const key = curve.publicKey(secret);
  const keyX = key.subarray(1);
  const wiped: Uint8Array[] = [];
  const wipe = (bytes: Uint8Array): Uint8Array => {
    wiped.push(bytes);
    return bytes;
  };
  try {
    // d = secret if P.y is even, else n - secret
    const d = key[0] === EVEN ? secret : wipe(curve.negateSecret(secret));
    // k' = H_nonce((d xor H_aux(a)) || P.x || m)
    const mask = taggedHash('BIP0340/aux', AUXILIARY);
    const masked = wipe(d.map((byte, index) => byte ^ mask[index]!));
    const nonce = wipe(taggedHash('BIP0340/nonce', masked, keyX, digest));
    const noncePoint = curve.publicKey(nonce);
    const nonceX = noncePoint.subarray(1);
    // k = k' if R.y is even, else n - k'
    const k = noncePoint[0] === EVEN ? nonce : wipe(curve.negateSecret(nonce));
    // e = H_challenge(R.x || P.x || m)
    const challenge = taggedHash('BIP0340/challenge', nonceX, keyX, digest);
    // s = k + e·d mod n
    const s = curve.addToSecret(k, wipe(curve.multiplySecret(d, challenge)));
    // s·G = R + e·P, both points with even y
    const expected = curve.addMultiple(evenPoint(nonceX), evenPoint(keyX), challenge);
    if (!equalBytes(curve.publicKey(s), expected)) {
      throw new Error('expected the computed Schnorr signature to verify');
    }
    return Uint8Array.of(...nonceX, ...s);
  } finally {
    for (const bytes of wiped) bytes.fill(0);
  }
}

/** sha256(sha256(tag) || sha256(tag) || messages), BIP-340. */
export function taggedHash(tag: string, ...messages: Uint8Array[]): Uint8Array {
  return noble.utils.taggedHash(tag, ...messages);
}

function evenPoint(x: Uint8Array): Uint8Array {
  return Uint8Array.of(EVEN, ...x);
}
