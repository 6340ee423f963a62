import { bytesTo0xHex } from '../../../crypto/encoding.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { BatchCall } from '../../../signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../../../signing/ethereum/token-calls.ts';
import { callChain } from './call-chain.ts';

/** An amount of a token that a contract will take from its owner. Addresses in any letter case. */
export interface Spending {
  readonly token: string;
  readonly owner: string;
  readonly spender: string;
  readonly rawAmount: bigint;
}

/**
 * The calls that let a contract take exactly this amount, and never more; none if it may already take as much. Another
 * allowance that is there is set to zero first: tokens like USDT refuse to change one into another.
 *
 * @throws ApiError transaction_broadcast_failure when the chain cannot be reached.
 */
export async function exactApproval(
  chain: EvmChain,
  { token, owner, spender, rawAmount }: Spending,
): Promise<BatchCall[]> {
  const names = { owner: owner.toLowerCase(), spender: spender.toLowerCase() };
  const data = encodeTokenCall({ name: 'allowance', ...names });
  const answer = await callChain(chain.read({ to: token, data }));
  const allowed = answer.length === 32 ? BigInt(bytesTo0xHex(answer)) : 0n;
  if (allowed >= rawAmount) return [];
  const approve = (amount: bigint): BatchCall => ({
    ...{ to: token.toLowerCase(), value: 0n },
    data: encodeTokenCall({ name: 'approve', spender: names.spender, amount }),
  });
  return allowed === 0n ? [approve(rawAmount)] : [approve(0n), approve(rawAmount)];
}
