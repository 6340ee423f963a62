import {
  type CumulativeReward,
  parentHash,
  rewardLeaf,
} from '../../../../../engine/signing/ethereum/contract-calls.ts';
import type { Block } from '../../pool.ts';
import { give } from '../faucet.ts';
import type { EvmState } from '../state.ts';
import { DISTRIBUTOR_ADDRESS } from './addresses.ts';
import { solidity } from './generated/solidity.ts';
import { addressWord, memberSlot, numberIn, wordOf } from './storage-layout.ts';

/** The key under which the rewards are kept. The contract itself stores only their root. */
const REWARDS = 'rewards';
const MAX_UINT208 = 2n ** 208n - 1n;
const { slots } = solidity.Distributor;

/** A reward and its Merkle proof. */
interface ProvenReward extends CumulativeReward {
  readonly claimed: bigint;
  readonly proof: readonly string[];
}

/**
 * Increases what an account can claim. The faucet gives the distributor the same amount.
 *
 * @throws InvalidDepositError
 */
export function addReward(
  state: EvmState,
  block: Block,
  { user, token, amount, decimals, symbol }: CumulativeReward & { decimals: number; symbol: string },
): void {
  const all = rewardsOf(state);
  const before = all.find((reward) => reward.user === user && reward.token === token);
  const sum = (before?.amount ?? 0n) + amount;
  give(state, block, { owner: DISTRIBUTOR_ADDRESS, asset: token, rawAmount: amount, decimals, symbol });
  const others = all.filter((reward) => reward !== before);
  state.contracts.set(DISTRIBUTOR_ADDRESS, REWARDS, [...others, { user, token, amount: sum }]);
  publishRoot(state);
}

/** Writes the Merkle root of all rewards into the contract. */
export function publishRoot(state: EvmState): void {
  const root = merkleRoot(rewardsOf(state).map(rewardLeaf));
  state.bytecode.setWord(DISTRIBUTOR_ADDRESS, wordOf(slots.root), root.slice(2));
}

/** Returns whether a reward would exceed the maximum total of an account in a token. */
export function isTooMuch(state: EvmState, { user, token, amount }: CumulativeReward): boolean {
  const before = rewardsOf(state).find((reward) => reward.user === user && reward.token === token);
  return (before?.amount ?? 0n) + amount > MAX_UINT208;
}

/** Returns the rewards of an account, in the order of their tokens. */
export function provenRewards(state: EvmState, user: string): readonly ProvenReward[] {
  const all = rewardsOf(state);
  const leaves = all.map(rewardLeaf);
  return all
    .flatMap((reward, index) =>
      reward.user === user
        ? [{ ...reward, claimed: claimedOf(state, reward), proof: merkleProof(leaves, index) }]
        : [],
    )
    .sort((one, other) => (one.token < other.token ? -1 : 1));
}

function rewardsOf({ contracts }: EvmState): readonly CumulativeReward[] {
  return contracts.get<readonly CumulativeReward[]>(DISTRIBUTOR_ADDRESS, REWARDS) ?? [];
}

/**
 * Returns the slot with the amount of a token that an account has claimed. The word also contains the time of the
 * claim.
 */
export function claimSlot({ user, token }: Pick<CumulativeReward, 'user' | 'token'>): string {
  return memberSlot(memberSlot(wordOf(slots.claimed), addressWord(user)), addressWord(token));
}

function claimedOf({ bytecode }: EvmState, reward: Pick<CumulativeReward, 'user' | 'token'>): bigint {
  return numberIn(bytecode.word(DISTRIBUTOR_ADDRESS, claimSlot(reward))) & MAX_UINT208;
}

// Computes a Merkle tree of hashes in 0x hex. A node without a sibling is its own parent.

const EMPTY_ROOT = `0x${'0'.repeat(64)}`;

function merkleRoot(leaves: readonly string[]): string {
  return levelsOf(leaves).at(-1)?.[0] ?? EMPTY_ROOT;
}

/** Returns the siblings on the way from a leaf to the root. */
function merkleProof(leaves: readonly string[], leaf: number): string[] {
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
