import { parentHash } from '../../../../../engine/signing/ethereum/contract-calls.ts';

// A Merkle tree of hashes as 0x hex. A node without a sibling is its own parent.

const EMPTY_ROOT = `0x${'0'.repeat(64)}`;

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

function levelsOf(leaves: readonly string[]): string[][] {
  const levels = [[...leaves]];
  for (let level = levels[0]!; level.length > 1; level = levels.at(-1)!) {
    const parents: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const [left, right] = [level[index]!, level[index + 1]];
      parents.push(right === undefined ? left : parentHash(left, right));
    }
    levels.push(parents);
  }
  return levels;
}
