import type { BroadcastOutcome, BroadcastRefusal } from '../../../../ports/chains.ts';
import { refuse } from '../decode-or-refuse.ts';
import type { PoolEntry } from '../pool.ts';
import { canAfford } from './gas-payment.ts';
import { TRANSACTION_GAS_CAP } from './machine.ts';
import type { EvmParts } from './parts.ts';
import type { DecodedTransaction, EvmPlan } from './plan.ts';

// A replacement with the same nonce must raise both fees by at least 10 percent.
const BUMP_PERCENT = 110n;
/** The maximum size of the code that creates a smart contract, in bytes (EIP-3860). */
const MAX_INIT_CODE = 49_152;
/** CHOICE: as in geth by default, at most 64 transactions of an account wait behind a missing nonce. */
const MAX_BEHIND_GAP = 64;
/** CHOICE: as in geth by default, a chain keeps at most 5,120 pending transactions. */
const MAX_PENDING = 5_120;

/** Adds a transaction to the pool or rejects it. The checks are those of a node. */
export function acceptTransaction(
  { world, state, pool, blocks }: EvmParts,
  decoded: DecodedTransaction,
): BroadcastOutcome {
  const { hash, plan, lane } = decoded;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  const { sender } = plan;
  const fault = faultOf(decoded, {
    chainId: state.chainId,
    baseFee: state.baseFee,
    nonce: state.accounts.nonce(sender, lane),
  });
  if (fault !== undefined) return refuse(...fault);
  if (pool.pendingCount() >= MAX_PENDING) return refuse('invalid', 'txpool is full');
  const waiting = pool.waiting(sender, lane);
  const replaced = waiting.find((entry) => entry.nonce === Number(decoded.nonce));
  if (replaced !== undefined && !outbids(plan, replaced.plan)) {
    return refuse('underpriced', 'replacement transaction underpriced');
  }
  const next = nextNonce(state.accounts.nonce(sender, lane), waiting);
  const behindGap = waiting.filter(({ nonce = 0 }) => nonce > next).length;
  if (replaced === undefined && Number(decoded.nonce) > next && behindGap >= MAX_BEHIND_GAP) {
    return refuse('invalid', `account limit exceeded: ${behindGap} transactions wait for nonce ${next}`);
  }
  const others = waiting.filter((entry) => entry !== replaced).map((entry) => entry.plan);
  if (!canAfford(state, [...others, plan])) {
    return refuse('insufficient_funds', 'insufficient funds for gas * price + value');
  }
  if (replaced !== undefined) pool.replace(replaced.hash, hash);
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  pool.add({ hash, sender, lane, nonce: Number(decoded.nonce), plan, ...times });
  return { isAccepted: true, hash };
}

/**
 * Returns the account's first nonce that no transaction has.
 *
 * @param stored the nonce in the latest state.
 * @param waiting the account's pending transactions, in the order of their nonces.
 */
export function nextNonce(stored: number, waiting: readonly Pick<PoolEntry<EvmPlan>, 'nonce'>[]): number {
  let next = stored;
  for (const { nonce } of waiting) if (nonce === next) next += 1;
  return next;
}

function faultOf(
  { chainId, nonce, plan }: DecodedTransaction,
  chain: { chainId: bigint; baseFee: bigint; nonce: number },
): [BroadcastRefusal, string] | undefined {
  if (chainId !== undefined && BigInt(chainId) !== chain.chainId) {
    return ['invalid', `invalid chain id: expected ${chain.chainId}, got ${chainId}`];
  }
  if (nonce < BigInt(chain.nonce)) return ['stale', `nonce too low: next nonce ${chain.nonce}, got ${nonce}`];
  if (nonce >= BigInt(Number.MAX_SAFE_INTEGER)) return ['invalid', 'nonce too high'];
  const least = plan.intrinsicGas > plan.floorGas ? plan.intrinsicGas : plan.floorGas;
  if (plan.gasLimit < least)
    return ['invalid', `intrinsic gas too low: have ${plan.gasLimit}, want ${least}`];
  const initCode = plan.calls.find(({ to }) => to === null)?.data.slice(2) ?? '';
  if (initCode.length / 2 > MAX_INIT_CODE) {
    const fault = `max initcode size exceeded: code size ${initCode.length / 2}, limit ${MAX_INIT_CODE}`;
    return ['invalid', fault];
  }
  // EIP-7702
  if (plan.raw?.startsWith('0x04') === true) {
    if (plan.authorizations.length === 0) return ['invalid', 'EIP-7702 transaction with empty auth list'];
    if (plan.calls.some(({ to }) => to === null)) {
      return ['invalid', 'EIP-7702 transaction cannot be used to create contract'];
    }
  }
  if (plan.gasLimit > TRANSACTION_GAS_CAP) {
    return ['invalid', `transaction gas limit too high (cap: ${TRANSACTION_GAS_CAP}, tx: ${plan.gasLimit})`];
  }
  if (plan.maxPriorityFeePerGas > plan.maxFeePerGas) {
    return ['invalid', 'max priority fee per gas higher than max fee per gas'];
  }
  if (plan.maxFeePerGas < chain.baseFee) {
    const terms = `address: ${plan.sender}, maxFeePerGas: ${plan.maxFeePerGas}, baseFee: ${chain.baseFee}`;
    return ['underpriced', `max fee per gas less than block base fee: ${terms}`];
  }
  return undefined;
}

function outbids(plan: EvmPlan, replaced: EvmPlan): boolean {
  return (
    plan.maxFeePerGas * 100n >= replaced.maxFeePerGas * BUMP_PERCENT &&
    plan.maxPriorityFeePerGas * 100n >= replaced.maxPriorityFeePerGas * BUMP_PERCENT
  );
}
