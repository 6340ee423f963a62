import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';

/*
 * The Merkle trees of reward distributors, with hashes as lower-case 0x hex. A node is the hash of its two children in
 * ascending order, so a proof needs no positions. Source: AngleProtocol/merkl-contracts, Distributor.
 */

/** What an account was given of a token in all, in base units. Addresses are lower-case 0x hex. */
export interface CumulativeReward {
  readonly user: string;
  readonly token: string;
  readonly amount: bigint;
}

// keccak256(abi.encode(user, token, amount))
export function rewardLeaf({ user, token, amount }: CumulativeReward): string {
  const words = [user.slice(2), token.slice(2), amount.toString(16)].map((word) => word.padStart(64, '0'));
  return bytesTo0xHex(keccak_256(hexToBytes(words.join(''))));
}

// keccak256(lower child || higher child)
export function parentHash(one: string, other: string): string {
  const [low, high] = one < other ? [one, other] : [other, one];
  return bytesTo0xHex(keccak_256(hexToBytes(low.slice(2) + high.slice(2))));
}

/** The root that a leaf has with the siblings in `proof`. */
export function rootOfProof(leaf: string, proof: readonly string[]): string {
  return proof.reduce(parentHash, leaf);
}
