import {
  type CumulativeReward,
  rewardDistributor,
  rewardLeaf,
  rootOfProof,
} from '../../../../../engine/signing/ethereum/contract-calls.ts';
import { RevertError } from '../../ledger.ts';
import { give } from '../faucet.ts';
import { type Frame, sendToken } from '../frame.ts';
import { DISTRIBUTOR_ADDRESS } from './addresses.ts';
import { EMPTY_ROOT, merkleProof, merkleRoot } from './merkle-tree.ts';
import type { Program, ProgramView } from './program.ts';

/** The key of all rewards in the state of contracts. */
const REWARDS = 'rewards';
const MAX_UINT208 = 2n ** 208n - 1n;
// CHOICE: gas per reward of a claim.
const CLAIM_GAS = 30_000n;
const REWARD_GAS = 65_000n;

/** What an account has claimed of a token. */
interface Claimed {
  readonly amount: bigint;
  readonly seconds: number;
  readonly root: string;
}

/** A reward with what it takes to claim it. */
export interface ProvenReward extends CumulativeReward {
  readonly claimed: bigint;
  readonly proof: readonly string[];
}

/** Pays cumulative rewards against a Merkle root. Source: AngleProtocol/merkl-contracts, Distributor. */
export const distributorProgram: Program = {
  run(frame, { from, value, data }) {
    const call = rewardDistributor.decodeCall(data);
    if (call?.name !== 'claim' || value > 0n) throw new RevertError('execution reverted');
    const [users, tokens, amounts, proofs] = call.args as [string[], string[], bigint[], string[][]];
    const isUneven = [tokens, amounts, proofs].some(({ length }) => length !== users.length);
    if (users.length === 0 || isUneven) throw new RevertError('execution reverted: InvalidLengths()');
    frame.gas += CLAIM_GAS + REWARD_GAS * BigInt(users.length);
    for (const [index, user] of users.entries()) {
      // CHOICE: operators, who claim for others, are not simulated.
      if (user !== from) throw new RevertError('execution reverted: NotWhitelisted()');
      claim(frame, { user, token: tokens[index]!, amount: amounts[index]! }, proofs[index]!);
    }
  },
  read(view, data) {
    const call = rewardDistributor.decodeCall(data);
    if (call?.name === 'getMerkleRoot') return rewardDistributor.encodeResult(call.name, rootOf(view));
    if (call?.name !== 'claimed') return undefined;
    const [user, token] = call.args as [string, string];
    const { amount, seconds, root } = claimedOf(view, { user, token });
    return rewardDistributor.encodeResult('claimed', amount, seconds, root);
  },
};

function claim(frame: Frame, reward: CumulativeReward, proof: readonly string[]): void {
  const root = rootOf(frame);
  if (root === EMPTY_ROOT || rootOfProof(rewardLeaf(reward), proof) !== root) {
    throw new RevertError('execution reverted: InvalidProof()');
  }
  const { amount: claimed } = claimedOf(frame, reward);
  if (reward.amount < claimed)
    throw new RevertError('execution reverted: panic: arithmetic underflow or overflow (0x11)');
  const now: Claimed = { amount: reward.amount, seconds: frame.block.seconds, root };
  frame.state.contracts.set(DISTRIBUTOR_ADDRESS, claimedKey(reward), now);
  if (reward.amount > claimed) {
    sendToken(frame, reward.token, DISTRIBUTOR_ADDRESS, reward.user, reward.amount - claimed);
  }
}

/** Adds to what an account may claim; the faucet gives the distributor as much. Throws InvalidDepositError. */
export function addReward(
  view: ProgramView,
  { user, token, amount, decimals, symbol }: CumulativeReward & { decimals: number; symbol: string },
): void {
  const { state, block } = view;
  const all = rewardsOf(view);
  const before = all.find((reward) => reward.user === user && reward.token === token);
  const sum = (before?.amount ?? 0n) + amount;
  give(state, block, { owner: DISTRIBUTOR_ADDRESS, asset: token, rawAmount: amount, decimals, symbol });
  const others = all.filter((reward) => reward !== before);
  state.contracts.set(DISTRIBUTOR_ADDRESS, REWARDS, [...others, { user, token, amount: sum }]);
}

/** The most that an account may be given of a token in all. */
export function isTooMuch(view: ProgramView, { user, token, amount }: CumulativeReward): boolean {
  const before = rewardsOf(view).find((reward) => reward.user === user && reward.token === token);
  return (before?.amount ?? 0n) + amount > MAX_UINT208;
}

/** The rewards of an account with their proofs, in order of their tokens. */
export function provenRewards(view: ProgramView, user: string): readonly ProvenReward[] {
  const all = rewardsOf(view);
  const leaves = all.map(rewardLeaf);
  return all
    .flatMap((reward, index) =>
      reward.user === user
        ? [{ ...reward, claimed: claimedOf(view, reward).amount, proof: merkleProof(leaves, index) }]
        : [],
    )
    .sort((one, other) => (one.token < other.token ? -1 : 1));
}

function rewardsOf({ state }: ProgramView): readonly CumulativeReward[] {
  return state.contracts.get<readonly CumulativeReward[]>(DISTRIBUTOR_ADDRESS, REWARDS) ?? [];
}

function rootOf(view: ProgramView): string {
  return merkleRoot(rewardsOf(view).map(rewardLeaf));
}

function claimedOf({ state }: ProgramView, reward: Pick<CumulativeReward, 'user' | 'token'>): Claimed {
  const none: Claimed = { amount: 0n, seconds: 0, root: EMPTY_ROOT };
  return state.contracts.get<Claimed>(DISTRIBUTOR_ADDRESS, claimedKey(reward)) ?? none;
}

function claimedKey({ user, token }: Pick<CumulativeReward, 'user' | 'token'>): string {
  return `claimed ${user} ${token}`;
}
