import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../../crypto/encoding.ts';

/*
 * A Merkle tree of hashes as 0x hex. A node is the hash of its two children in ascending order, so a proof needs no
 * positions; a node without a sibling is its own parent.
 */

export const EMPTY_ROOT = `0x${'0'.repeat(64)}`;

export function merkleRoot(leaves: readonly string[]): string {
  return levelsOf(leaves).at(-1)?.[0] ?? EMPTY_ROOT;
}

/** The siblings from a leaf to the root. */
export function merkleProof(leaves: readonly string[], leaf: number): string[] {
  const proof: string[] = [];
  let index = leaf;
  for (const level of levelsOf(leaves).slice(0, -1)) {
    const sibling = level[index ^ 1];
    if (sibling !== undefined) proof.push(sibling);
    index >>= 1;
  }
  return proof;
}

export function rootOfProof(leaf: string, proof: readonly string[]): string {
  return proof.reduce(parentOf, leaf);
}

function levelsOf(leaves: readonly string[]): string[][] {
  const levels = [[...leaves]];
  for (let level = levels[0]!; level.length > 1; level = levels.at(-1)!) {
    const parents: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index]!, level[index + 1]];
      parents.push(right === undefined ? left : parentOf(left, right));
    }
    levels.push(parents);
  }
  return levels;
}

function parentOf(one: string, other: string): string {
  const [low, high] = one < other ? [one, other] : [other, one];
  return bytesTo0xHex(keccak_256(hexToBytes(low.slice(2) + high.slice(2))));
}
