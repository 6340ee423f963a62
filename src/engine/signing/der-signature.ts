import { concatBytes } from '../crypto/encoding.ts';

/** r || s (64 bytes) as DER: SEQUENCE { INTEGER r, INTEGER s }. Source: X.690 8.3, BIP-66. */
export function encodeDerSignature(compact: Uint8Array): Uint8Array {
  const body = concatBytes(derInteger(compact.subarray(0, 32)), derInteger(compact.subarray(32)));
  return concatBytes(Uint8Array.of(0x30, body.length), body);
}

// Encodes minimally, with a leading zero byte if the top bit would make the integer negative.
function derInteger(bytes: Uint8Array): Uint8Array {
  const firstNonZero = bytes.findIndex((byte) => byte !== 0);
  const minimal = bytes.subarray(firstNonZero === -1 ? bytes.length - 1 : firstNonZero);
  const isNegative = ((minimal[0] ?? 0) & 0x80) !== 0;
  const padded = isNegative ? concatBytes(Uint8Array.of(0), minimal) : minimal;
  return concatBytes(Uint8Array.of(0x02, padded.length), padded);
}
