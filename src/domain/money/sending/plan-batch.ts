import { batchUnits, unfoldBatches } from '../../../engine/actions/decode-action.ts';
import { bytesTo0xHex } from '../../../engine/crypto/encoding.ts';
import {
  BATCH_EXECUTOR_ADDRESS,
  encodeBatch,
  encodeSupportsBatches,
} from '../../../engine/signing/ethereum/batch-executor.ts';
import { SIMPLE_ACCOUNT_ADDRESS } from '../../../engine/signing/ethereum/smart-accounts.ts';
import { parseEvmAddress, parseHexBytes, parseQuantity } from '../../../engine/signing/fields.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { EthereumSendCallsCall } from '../../../generated/schemas.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction } from './broadcast.ts';
import { signEthereum } from './build-ethereum.ts';
import { callChain, requireChain } from './call-chain.ts';
import { findNonce, laterDelegation, lockNonces } from './nonces.ts';
import {
  type EthereumPlan,
  planEthereum,
  requireFilledBelow,
  withAuthorizationGas,
} from './plan-ethereum.ts';

/** Calls that the wallet's own account executes in order, atomically. */
export interface BatchDraft {
  readonly caip2: string;
  readonly address: string;
  readonly calls: readonly EthereumSendCallsCall[];
  readonly dataSuffix?: string | undefined;
}

export interface CallsPlan extends EthereumPlan {
  /** Whether the transaction must also delegate the account to the executor. */
  readonly delegates: boolean;
  /** The smart contract to which the account is delegated, as lower-case 0x hex; undefined if it is not delegated. */
  readonly delegate: string | undefined;
}

/**
 * Combines a batch into one transaction from the account to itself, and reads from the chain what it needs.
 *
 * CHOICE: the specification does not say how a batch is executed. This server uses EIP-7702. An account without code
 * delegates to the executor in the same transaction. An account that delegates elsewhere keeps its delegation and must
 * support batches itself.
 *
 * @throws ApiError not_supported when the executor is not deployed or the account's own code does not support batches;
 * what `planEthereum` throws.
 */
export async function planBatch(
  context: Pick<OperationContext, 'chains'>,
  { caip2, address, calls, dataSuffix }: BatchDraft,
): Promise<CallsPlan> {
  const chain = requireChain(context, { caip2, kind: 'evm' });
  const batch = calls.map((call, index) => readCall(call, `/calls/${index}`));
  const delegate = await callChain(delegateOf(chain, address));
  const delegates = await callChain(mustDelegate(chain, { address, delegate }));
  const plan = await planEthereum(context, {
    caip2,
    address,
    transaction: { to: address, data: bytesTo0xHex(encodeBatch(batch)) },
    dataSuffix,
    ...(delegates ? { delegatesTo: BATCH_EXECUTOR_ADDRESS } : {}),
  });
  return { ...plan, delegates, delegate };
}

/**
 * Parses a call of a batch.
 *
 * @throws SigningInputError and ApiError invalid_data, with pointers under `at`.
 */
export function readCall({ to, value, data }: EthereumSendCallsCall, at: string) {
  const target = parseEvmAddress(to, `${at}/to`);
  // ERC-7821 treats address 0 as the account itself.
  if (BigInt(target) === 0n) throw invalidField(`/params${at}/to`, 'expected an address other than 0');
  return {
    to: target,
    value: value === undefined ? 0n : parseQuantity(value, `${at}/value`, 256),
    data: parseHexBytes(data ?? '0x', `${at}/data`),
  };
}

// EIP-7702: the code of a delegated account is ef0100 || address.
const DELEGATION = /^0xef0100([0-9a-f]{40})$/;

async function delegateOf(chain: EvmChain, address: string): Promise<string | undefined> {
  const [, delegate] = DELEGATION.exec(bytesTo0xHex(await chain.code(address))) ?? [];
  return delegate === undefined ? undefined : `0x${delegate}`;
}

async function mustDelegate(
  chain: EvmChain,
  { address, delegate }: { readonly address: string; readonly delegate: string | undefined },
): Promise<boolean> {
  // An earlier sponsored transaction delegated the account to our account contract. Replacing that delegation is safe.
  if (delegate === SIMPLE_ACCOUNT_ADDRESS) return true;
  if (delegate !== undefined) {
    const answer = await chain.read({ to: address, data: encodeSupportsBatches() });
    const isExecutor = delegate === BATCH_EXECUTOR_ADDRESS;
    if (isExecutor || (answer.length === 32 && BigInt(bytesTo0xHex(answer)) === 1n)) return false;
    throw new ApiError(
      'not_supported',
      `the account delegates to \`${delegate}\`, which takes no batches of ERC-7821`,
    );
  }
  if ((await chain.code(BATCH_EXECUTOR_ADDRESS)).length > 0) return true;
  throw new ApiError(
    'not_supported',
    `/caip2: the chain \`${chain.caip2}\` has no batch executor at \`${BATCH_EXECUTOR_ADDRESS}\``,
  );
}

/**
 * Builds the calls and reserves their nonces. If the account is not delegated to the executor, and our pending
 * transactions do not delegate it there, the same transaction delegates it and also uses the next nonce.
 *
 * @throws ApiError not_supported while a transaction that delegates the account to another smart contract is pending;
 * transaction_broadcast_failure when the fee exceeds a ceiling of the chain.
 */
export async function buildCalls(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  plan: CallsPlan,
): Promise<BuiltTransaction> {
  const { chain, address, pendingCount } = plan;
  const account = { caip2: chain.caip2, address };
  await lockNonces(context, chain.caip2, [address]);
  const delegates = plan.delegates || (await isLeaving(context, account, plan));
  const reach = (): number => (delegates ? 2 : 1);
  const { nonce, afterTransactionId } = await findNonce(context, account, pendingCount ?? 0n, reach);
  const transaction =
    delegates && !plan.delegates ? withAuthorizationGas(plan.transaction) : plan.transaction;
  requireFilledBelow(chain, {}, transaction);
  const request = { ...transaction, ...(delegates ? { type: 4 as const } : {}), nonce };
  const data = 'data' in transaction ? parseHexBytes(transaction.data ?? '0x', '/data') : new Uint8Array();
  const units = batchUnits(data, chain.chainId, address) ?? [];
  return {
    chain,
    action: unfoldBatches({ method: 'wallet_sendCalls', units }, address),
    nonce,
    afterTransactionId,
    // EIP-7702: the transaction uses its own nonce first.
    authorizations: delegates
      ? [{ authority: address, nonce: nonce + 1, contract: BATCH_EXECUTOR_ADDRESS }]
      : [],
    request,
    async sign(key) {
      if (!delegates) return signEthereum(key, request);
      const terms = { contract: BATCH_EXECUTOR_ADDRESS, chain_id: Number(chain.chainId), nonce: nonce + 1 };
      const { authorization } = await key.sign('eth_sign7702Authorization', terms);
      return signEthereum(key, { ...request, authorization_list: [authorization] });
    },
  };
}

/**
 * Returns whether the calls must delegate the account to the executor because a transaction of ours delegates it to our
 * account contract, but the plan does not show that yet.
 *
 * @throws ApiError not_supported if that transaction delegates the account to another smart contract.
 */
async function isLeaving(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  account: { readonly caip2: string; readonly address: string },
  { delegate }: Pick<CallsPlan, 'delegate'>,
): Promise<boolean> {
  const contract = await laterDelegation(context, account);
  if (contract === undefined || contract === BATCH_EXECUTOR_ADDRESS || contract === delegate) return false;
  if (contract === SIMPLE_ACCOUNT_ADDRESS) return true;
  throw new ApiError(
    'not_supported',
    `another transaction delegates the account to \`${contract}\`; send the calls when it is included`,
  );
}
