import { bytesTo0xHex } from '../../../engine/crypto/encoding.ts';
import type { BatchCall } from '../../../engine/signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../../../engine/signing/ethereum/contract-calls.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { PlanContext } from '../../../ports/operation-context.ts';
import { openStatuses, TransactionEntity } from '../transactions/transaction.entity.ts';
import { callChain } from './call-chain.ts';

/** The amount that the next call lets a contract take from an account. */
export interface Allowance {
  readonly chain: EvmChain;
  /** The token contract. */
  readonly token: string;
  readonly owner: string;
  readonly spender: string;
  readonly rawAmount: bigint;
}

/**
 * The calls that allow a contract to take exactly this amount, and never more. A sufficient allowance is used as it
 * is. Any other allowance is first set to zero, because tokens like USDT refuse to change a nonzero allowance. While
 * transactions of the account are pending, every allowance is set to zero first, because these transactions may use
 * it or change it.
 *
 * @throws ApiError transaction_broadcast_failure when the chain cannot be reached.
 */
export async function approvalsFor(
  context: Pick<PlanContext, 'em'>,
  allowance: Allowance,
): Promise<BatchCall[]> {
  const { chain, token, owner, spender, rawAmount } = allowance;
  const approve = (amount: bigint): BatchCall => ({
    ...{ to: token.toLowerCase(), value: 0n },
    data: encodeTokenCall({ name: 'approve', spender: spender.toLowerCase(), amount }),
  });
  const allowed = await callChain(readAllowance(allowance));
  if (await hasOpenTransactions(context, chain, owner)) return [approve(0n), approve(rawAmount)];
  if (allowed >= rawAmount) return [];
  return allowed === 0n ? [approve(rawAmount)] : [approve(0n), approve(rawAmount)];
}

async function readAllowance({ chain, token, owner, spender }: Allowance): Promise<bigint> {
  const data = encodeTokenCall({
    name: 'allowance',
    owner: owner.toLowerCase(),
    spender: spender.toLowerCase(),
  });
  const answer = await chain.read({ to: token, data });
  return answer.length === 32 ? BigInt(bytesTo0xHex(answer)) : 0n;
}

async function hasOpenTransactions(
  { em }: Pick<PlanContext, 'em'>,
  { caip2 }: EvmChain,
  sender: string,
): Promise<boolean> {
  const open = { caip2, sender, nonce: { $ne: null }, status: { $in: openStatuses } };
  return (await em.count(TransactionEntity, open)) > 0;
}
