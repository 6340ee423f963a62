import { operationUnits, unfoldBatches, withoutSuffix } from '../../../engine/actions/decode-action.ts';
import { operationFee } from '../../../engine/actions/filled-fees.ts';
import { bytesTo0xHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import {
  BATCH_EXECUTOR_ADDRESS,
  type BatchCall,
  encodeBatch,
} from '../../../engine/signing/ethereum/batch-executor.ts';
import {
  encodeAccountCalls,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../engine/signing/ethereum/smart-accounts.ts';
import {
  encodeSponsoredOperation,
  hashUserOperation,
  sponsoredOperationParams,
} from '../../../engine/signing/ethereum/user-operation.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { EthereumSendCallsCall, UnsignedEthereumTransaction } from '../../../generated/schemas.ts';
import type { AnyChain, Bundler, EvmCall, EvmChain } from '../../../ports/chains.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction } from './broadcast.ts';
import { callChain, requireChain } from './call-chain.ts';
import { type FoundNonce, findNonce, laterDelegation, lockNonces } from './nonces.ts';
import { readCall } from './plan-batch.ts';
import {
  hexOf,
  requireOperationBelow,
  requirePricesBelow,
  requireSameChain,
  requireSameSender,
  simulatedGas,
  withMargin,
} from './plan-ethereum.ts';

/** Calls from the wallet's account whose gas a paymaster pays. */
export interface OperationDraft {
  readonly caip2: string;
  readonly address: string;
  /** A single call. Undefined if `calls` has several, which run atomically. */
  readonly transaction?: UnsignedEthereumTransaction | undefined;
  readonly calls?: readonly EthereumSendCallsCall[] | undefined;
  readonly dataSuffix?: string | undefined;
}

export interface OperationPlan {
  readonly chain: EvmChain;
  readonly bundler: Bundler;
  readonly address: string;
  readonly calls: readonly BatchCall[];
  /** The bytes that were appended to the data of the last call, if any. */
  readonly dataSuffix?: string | undefined;
  /** The gas for the calls, including a margin. */
  readonly callGas: bigint;
  /** The maximum cost of the operation's gas, including the gas of its validation. */
  readonly cost: bigint;
  readonly fees: { readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint | undefined };
  /** Whether the account is already delegated to our account contract. */
  readonly isDelegated: boolean;
  /** The account's transaction count on the chain. */
  readonly pendingCount: bigint;
}

/**
 * Returns whether the chain's paymaster pays the gas of a request, so that its wallet needs no native asset. It pays
 * only for automations.
 */
export function paysForAutomations(
  { proof }: Pick<PlanContext, 'proof'>,
  chain: AnyChain,
): chain is EvmChain {
  return proof.consentOf !== undefined && chain.kind === 'evm' && chain.bundler !== undefined;
}

// CHOICE: gas limits for validating the signatures of the owner and the paymaster, and for the bundler's overhead.
const VERIFICATION_GAS = 100_000n;
const PAYMASTER_GAS = 50_000n;
const BUNDLER_GAS = 60_000n;

/**
 * Plans a user operation (ERC-4337) of the wallet's own account whose gas a paymaster pays. An account that does not
 * support operations yet is delegated in the same transaction (EIP-7702).
 *
 * @throws ApiError not_supported when no paymaster is available; invalid_data for fields that an operation cannot
 * carry; transaction_broadcast_failure when the chain cannot be reached or suggests fees above the ceilings; what
 * `planEthereum` throws for a failed simulation.
 */
export async function planOperation(
  context: Pick<OperationContext, 'chains'>,
  draft: OperationDraft,
): Promise<OperationPlan> {
  const { caip2, address } = draft;
  const chain = requireChain(context, { caip2, kind: 'evm' });
  const { bundler } = chain;
  if (bundler === undefined) {
    throw new ApiError('not_supported', `/sponsor: no paymaster is available on \`${caip2}\``);
  }
  const calls = readCalls(draft, chain);
  const [code, pendingCount, fees, units] = await callChain(
    Promise.all([
      chain.code(address),
      chain.nonce(address),
      chain.fees(),
      simulatedGas(chain, [dryCall(address, calls)]),
    ]),
  );
  const callGas = withMargin(units);
  requirePricesBelow(chain, fees);
  const gas = gasFieldsOf({ callGas, fees });
  requireOperationBelow(chain, gas);
  const isDelegated = bytesTo0xHex(code) === `0xef0100${SIMPLE_ACCOUNT_ADDRESS.slice(2)}`;
  const { dataSuffix } = draft;
  const terms = { callGas, fees, cost: operationFee(gas) };
  return { chain, bundler, address, calls, dataSuffix, ...terms, isDelegated, pendingCount };
}

/** The fields that an operation cannot carry, because it has a nonce, fees and a delegation of its own. */
const FOREIGN_FIELDS = [
  'nonce',
  'gas_limit',
  'gas_price',
  'max_fee_per_gas',
  'max_priority_fee_per_gas',
  'authorization_list',
] as const;

function readCalls({ transaction, calls = [], dataSuffix, address }: OperationDraft, chain: EvmChain) {
  if (transaction === undefined) {
    const read = calls.map((call, index) => readCall(call, `/calls/${index}`));
    return read.map((call, index) => (index === read.length - 1 ? suffixed(call, dataSuffix) : call));
  }
  const at = '/params/transaction';
  if ('calls' in transaction) {
    throw invalidField(`${at}/type`, 'expected a transaction of type 0, 1 or 2 with `sponsor`');
  }
  const foreign = FOREIGN_FIELDS.find((field) => transaction[field] !== undefined);
  if (foreign !== undefined) throw invalidField(`${at}/${foreign}`, 'expected none with `sponsor`');
  requireSameChain(transaction, chain);
  requireSameSender(transaction, address);
  const { to, value, data } = transaction;
  if (to === undefined) throw invalidField(`${at}/to`, 'expected a recipient with `sponsor`');
  return [suffixed(readCall({ to, value, data } as EthereumSendCallsCall, '/transaction'), dataSuffix)];
}

/** Returns the call with a suffix appended to its calldata. */
export function suffixed(call: BatchCall, dataSuffix = '0x'): BatchCall {
  if (dataSuffix === '0x') return call;
  return { ...call, data: hexToBytes(bytesTo0xHex(call.data).slice(2) + dataSuffix.slice(2)) };
}

/** Returns one call whose simulation shows the effect of all calls. Several calls go through the batch executor. */
function dryCall(from: string, calls: readonly BatchCall[]): EvmCall {
  const [only] = calls;
  if (only !== undefined && calls.length === 1) return { from, ...only };
  return { from, to: from, value: 0n, data: encodeBatch(calls), delegatedTo: BATCH_EXECUTOR_ADDRESS };
}

const NONCE_KEY_BYTES = 24;

/**
 * Builds the operation, and reserves the nonce of the delegation that it may need.
 *
 * CHOICE: every operation uses a random 192-bit nonce key, so operations are independent and need no counter.
 */
export async function buildOperation(
  context: Pick<OperationContext, 'em' | 'nowMs' | 'entropy'>,
  plan: OperationPlan,
  method: string,
): Promise<BuiltTransaction> {
  const { chain, address } = plan;
  const operation = operationOf(plan, context.entropy.bytes(NONCE_KEY_BYTES));
  const { nonce, afterTransactionId } = (await delegationNonce(context, plan)) ?? {};
  // Decode the call data that is signed, instead of using the plan, so that policies evaluate what is signed.
  const units = operationUnits(operation.call_data, chain.chainId) ?? [];
  return {
    chain,
    action: unfoldBatches({ method, units: withoutSuffix(units, plan.dataSuffix) }, address),
    sponsorship: 'operation',
    afterTransactionId,
    authorizations:
      nonce === undefined ? [] : [{ authority: address, nonce, contract: SIMPLE_ACCOUNT_ADDRESS }],
    async sign(key) {
      const chainId = Number(chain.chainId);
      const params = sponsoredOperationParams({ chainId, operation });
      const { signature } = await key.sign('eth_signUserOperation', params);
      const terms = { contract: SIMPLE_ACCOUNT_ADDRESS, chain_id: chainId };
      const authorization =
        nonce === undefined
          ? undefined
          : (await key.sign('eth_sign7702Authorization', { ...terms, nonce })).authorization;
      const { hash } = hashUserOperation(params);
      const signed = { user_operation: { ...operation, signature }, authorization };
      return { bytes: encodeSponsoredOperation(signed), hash: bytesTo0xHex(hash) };
    },
  };
}

/**
 * Returns the nonce for the delegation to our account contract. Returns undefined if the account was already delegated
 * to it when the operation was planned, and our pending transactions do not change that.
 */
async function delegationNonce(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  { chain, address, isDelegated, pendingCount }: OperationPlan,
): Promise<FoundNonce | undefined> {
  const account = { caip2: chain.caip2, address };
  await lockNonces(context, chain.caip2, [address]);
  const contract = await laterDelegation(context, account);
  if (isDelegated && (contract === undefined || contract === SIMPLE_ACCOUNT_ADDRESS)) return undefined;
  return findNonce(context, account, pendingCount);
}

function operationOf({ bundler, address, calls, callGas, fees }: OperationPlan, nonceKey: Uint8Array) {
  return {
    sender: address,
    // key || 64-bit sequence
    nonce: `0x${bytesTo0xHex(nonceKey).slice(2)}${'0'.repeat(16)}`,
    call_data: bytesTo0xHex(encodeAccountCalls(calls)),
    ...gasFieldsOf({ callGas, fees }),
    paymaster: bundler.paymaster,
    paymaster_data: '0x',
  };
}

function gasFieldsOf({ callGas, fees }: Pick<OperationPlan, 'callGas' | 'fees'>) {
  return {
    call_gas_limit: hexOf(callGas),
    verification_gas_limit: hexOf(VERIFICATION_GAS),
    pre_verification_gas: hexOf(BUNDLER_GAS),
    max_fee_per_gas: hexOf(fees.maxFeePerGas),
    max_priority_fee_per_gas: hexOf(fees.maxPriorityFeePerGas ?? fees.maxFeePerGas),
    paymaster_verification_gas_limit: hexOf(PAYMASTER_GAS),
    paymaster_post_op_gas_limit: hexOf(0n),
  };
}
