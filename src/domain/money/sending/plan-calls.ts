import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import { bytesTo0xHex } from '../../../engine/crypto/encoding.ts';
import type { EthereumTransaction } from '../../../engine/signing/ethereum/any-transaction.ts';
import {
  BATCH_EXECUTOR_ADDRESS,
  type BatchCall,
  encodeBatch,
} from '../../../engine/signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../../../engine/signing/ethereum/contract-calls.ts';
import { ApiError } from '../../../errors.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { openStatuses, TransactionEntity } from '../transactions/transaction.entity.ts';
import type { BuildTransaction } from './broadcast.ts';
import { buildEthereum } from './build-ethereum.ts';
import { callChain, chainRefusal, insufficientFunds, requireChain } from './call-chain.ts';
import { laterDelegation } from './nonces.ts';
import {
  feeFieldsOf,
  hexOf,
  requireFeeBelow,
  requireGasBelow,
  requirePricesBelow,
  UNKNOWN_GAS,
  withMargin,
} from './plan-ethereum.ts';
import { buildOperation, planOperation } from './plan-user-operation.ts';

/** Calls of one account that build on each other, for example an approval and the call that spends the allowance. */
interface CallsDraft {
  readonly caip2: string;
  readonly address: string;
  readonly calls: readonly BatchCall[];
  /** The RPC method or wallet action that sends the calls. */
  readonly method: string;
  /** Whether the chain's paymaster pays the gas. All calls then form one user operation. */
  readonly isSponsored?: boolean | undefined;
}

export interface PlannedCalls {
  /** The maximum gas cost of all calls together, in base units of the native asset; 0 when sponsored. */
  readonly estimatedFee: bigint;
  /** The maximum gas cost in wei, even if it is sponsored. */
  readonly cost: bigint;
  /** The sum of all gas limits. */
  readonly gasUnits: bigint;
  /** One transaction per call, in order, or a single one when sponsored. */
  readonly builds: readonly BuildTransaction[];
}

// CHOICE: extra gas, because state can change before the block even if no transaction changes it. For example, a pool
// may begin to store its price history, or a vault may add its interest.
const LATER_GAS = 50_000n;

/**
 * Simulates calls one after the other and fills in their gas and fees. Call it outside any database transaction.
 *
 * @throws ApiError not_supported; insufficient_funds when the balance does not cover the calls and their gas;
 * transaction_execution_failure when a call fails after the previous ones; transaction_broadcast_failure when the chain
 * cannot be reached or suggests fees above the ceilings.
 */
export async function planCalls(context: PlanContext, draft: CallsDraft): Promise<PlannedCalls> {
  if (draft.isSponsored === true) return planSponsored(context, draft);
  const { caip2, address, method } = draft;
  const chain = requireChain(context, { caip2, kind: 'evm' });
  const isBatch = await takesBatches(chain, draft);
  const calls = isBatch ? [{ to: address, value: 0n, data: encodeBatch(draft.calls) }] : draft.calls;
  const [pendingCount, fees, units, [balance = 0n]] = await callChain(
    Promise.all([
      chain.nonce(address),
      chain.fees(),
      simulateInOrder(chain, address, calls),
      chain.balances(address, [null]),
    ]),
  );
  requirePricesBelow(chain, fees);
  const limits = units.map((unit) => (unit === undefined ? UNKNOWN_GAS : withMargin(unit) + LATER_GAS));
  for (const limit of limits) requireGasBelow(chain, limit);
  const gasUnits = limits.reduce((sum, limit) => sum + limit, 0n);
  const estimatedFee = gasUnits * fees.maxFeePerGas;
  requireFeeBelow(chain, estimatedFee);
  // The balance must cover this sum, because a node adds up the maximum costs of all pending transactions of the
  // account.
  const value = draft.calls.reduce((sum, call) => sum + call.value, 0n);
  const known = chainOfCaip2(caip2);
  // Tempo fees are paid in a token.
  const paysInTokens = known !== undefined && known.native === undefined;
  const needed = value + estimatedFee;
  if (!paysInTokens && needed > balance) {
    throw insufficientFunds({ caip2, address, tokenAddress: null, needed, balance });
  }
  const builds = calls.map((call, index): BuildTransaction => {
    const transaction = {
      ...{ to: call.to, value: hexOf(call.value), data: bytesTo0xHex(call.data) },
      ...feeFieldsOf(fees),
      ...{ from: address, chain_id: Number(chain.chainId), gas_limit: hexOf(limits[index] ?? UNKNOWN_GAS) },
    } as EthereumTransaction;
    return async (unit) => {
      if (isBatch) await requireDelegation(unit, { caip2, address });
      return buildEthereum(unit, { chain, address, transaction, pendingCount }, method);
    };
  });
  return { estimatedFee, cost: estimatedFee, gasUnits, builds };
}

async function planSponsored(context: PlanContext, draft: CallsDraft): Promise<PlannedCalls> {
  const calls = draft.calls.map(({ to, value, data }) => ({
    ...{ to, value: hexOf(value), data: bytesTo0xHex(data) },
  }));
  const plan = await planOperation(context, { caip2: draft.caip2, address: draft.address, calls });
  return {
    estimatedFee: 0n,
    cost: plan.cost,
    gasUnits: plan.callGas,
    builds: [(unit) => buildOperation(unit, plan, draft.method)],
  };
}

/**
 * Returns whether the calls are sent as one transaction.
 *
 * CHOICE: only an account that already delegates to the batch executor sends them together. An account is never
 * delegated unless a request asks for it.
 *
 * @throws ApiError transaction_broadcast_failure
 */
async function takesBatches(chain: EvmChain, { address, calls }: CallsDraft): Promise<boolean> {
  if (calls.length < 2) return false;
  const code = await callChain(chain.code(address));
  return bytesTo0xHex(code) === `0xef0100${BATCH_EXECUTOR_ADDRESS.slice(2)}`;
}

/**
 * Refuses the batch if another transaction ends the delegation on which it depends. The batch would then have no
 * effect.
 *
 * @throws ApiError not_supported
 */
async function requireDelegation(
  unit: Pick<OperationContext, 'em' | 'nowMs'>,
  account: { readonly caip2: string; readonly address: string },
): Promise<void> {
  const contract = await laterDelegation(unit, account);
  if (contract === undefined || contract === BATCH_EXECUTOR_ADDRESS) return;
  throw new ApiError(
    'not_supported',
    `another transaction delegates the account to \`${contract}\`; try again when it is included`,
  );
}

async function simulateInOrder(chain: EvmChain, from: string, calls: readonly BatchCall[]) {
  const simulation = await chain.simulate(calls.map((call) => ({ from, ...call })));
  if (simulation.succeeds) return simulation.units;
  throw chainRefusal(simulation.reason, simulation.message);
}

/** The amount that the next call lets a spender take from an account. */
interface Allowance {
  readonly chain: EvmChain;
  readonly token: string;
  readonly owner: string;
  readonly spender: string;
  readonly rawAmount: bigint;
}

/**
 * Returns the calls after which a spender may take this amount. They never raise the allowance above it. If the
 * allowance is already sufficient, no call is needed. Any other allowance is first set to zero, because tokens like
 * USDT refuse to change a nonzero allowance. While transactions of the account are pending, every allowance is set to
 * zero first, because these transactions may use it or change it.
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
