import { createHash } from 'node:crypto';

// A Merkle tree written from the definitions of RFC 6962 section 2.1, without any storage: the judge of ours.

const sha256 = (...parts: Uint8Array[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

/** The largest power of two smaller than `n`. */
function k(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** MTH(D) */
export function naiveRoot(d: readonly Uint8Array[]): Buffer {
  if (d.length === 0) return sha256();
  if (d.length === 1) return sha256(Uint8Array.of(0), d[0]!);
  const split = k(d.length);
  return sha256(Uint8Array.of(1), naiveRoot(d.slice(0, split)), naiveRoot(d.slice(split)));
}

/** PATH(m, D) */
export function naivePath(m: number, d: readonly Uint8Array[]): Buffer[] {
  if (d.length === 1) return [];
  const split = k(d.length);
  return m < split
    ? [...naivePath(m, d.slice(0, split)), naiveRoot(d.slice(split))]
    : [...naivePath(m - split, d.slice(split)), naiveRoot(d.slice(0, split))];
}

/** PROOF(m, D) = SUBPROOF(m, D, true) */
export function naiveConsistency(m: number, d: readonly Uint8Array[], isWhole = true): Buffer[] {
  if (m === d.length) return isWhole ? [] : [naiveRoot(d)];
  const split = k(d.length);
  return m <= split
    ? [...naiveConsistency(m, d.slice(0, split), isWhole), naiveRoot(d.slice(split))]
    : [...naiveConsistency(m - split, d.slice(split), false), naiveRoot(d.slice(0, split))];
}
