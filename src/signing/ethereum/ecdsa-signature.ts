import assert from 'node:assert/strict';
import { bytesTo0xHex, concatBytes } from '../../crypto/encoding.ts';
import { type EcdsaSignature, ecBackend } from '../../crypto/secp256k1.ts';

/** Signs a 32-byte digest; returns r || s || v with v = 27 + recovery id, 65 bytes as 0x hex. */
export function signDigestHex(digest: Uint8Array, secret: Uint8Array): `0x${string}` {
  return bytesTo0xHex(recoverableBytes(ecBackend.sign(digest, secret)));
}

/** r || s || (27 + recovery id), 65 bytes. */
export function recoverableBytes({ compact, recoveryId }: EcdsaSignature): Uint8Array {
  return concatBytes(compact, Uint8Array.of(27 + recoveryId));
}

/** The signature as a tuple for EVM transactions and authorizations; r and s are 32 bytes of 0x hex. */
export function signatureTuple({ compact, recoveryId }: EcdsaSignature): {
  r: `0x${string}`;
  s: `0x${string}`;
  yParity: 0 | 1;
} {
  // A recovery id of 2 or 3 requires an x coordinate above the curve's order (probability 2^-128).
  assert(recoveryId === 0 || recoveryId === 1);
  return {
    r: bytesTo0xHex(compact.subarray(0, 32)),
    s: bytesTo0xHex(compact.subarray(32)),
    yParity: recoveryId,
  };
}
