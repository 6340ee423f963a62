import { hash } from 'node:crypto';
import { operationFee, transactionFee } from '../../actions/filled-fees.ts';
import { ceilingsOf } from '../../assets/fee-ceilings.ts';
import { canonicalJson } from '../../crypto/encoding.ts';
import { parseQuantity, type Quantity } from '../../signing/fields.ts';
import type { KnownAction } from '../provable-rules.ts';
import type { SignedRequestContent } from '../signed-evidence.ts';
import type { Fields } from './completed-fields.ts';
import type { SignTask, WalletTask } from './match-task.ts';
import type { ConfiguredCeilings } from './requested-fees.ts';

/** The part that a signing task plays in an action that the server builds from a signed request. */
export interface BuiltPart {
  /**
   * The role of the part. Each role is counted separately, so that a request for one payment cannot sign a second
   * payment in place of an approval. `prepares` moves nothing, but makes the approval or delegation that a payment
   * needs. `passes on` pays wrapped assets to the recipient.
   */
  readonly role: 'prepares' | 'pays' | 'passes on';
  /** The number of transactions in this role that the request may have at the same time. */
  readonly atOnce: number;
  /** Addresses that must be the wallet's own address. */
  readonly accounts: readonly string[];
  /**
   * Returns the action that policies evaluate, and lists the fields that cannot be derived from the request and the
   * task.
   *
   * @param address the wallet's address.
   */
  action(address: string): KnownAction;
}

/** The swap router of a chain. Addresses are 0x hex in any case. */
export interface RouterSettings {
  readonly router: string;
  /** The wrapped token that the router uses for the native asset; undefined if the operator has not set one. */
  readonly wrapped?: string | undefined;
}

/**
 * The operator's settings, by chain, for transactions that a server builds. The signer has its own copy and compares
 * transactions with it.
 */
export interface BuildingSettings {
  /** Fee ceilings that override the defaults. */
  readonly feeCeilings: ConfiguredCeilings;
  readonly swapRouters: ReadonlyMap<string, RouterSettings>;
  /** The smart contracts that pay rewards. */
  readonly rewardDistributors: ReadonlyMap<string, string>;
}

/**
 * Returns the smart contracts in the settings, as texts such as `router eip155:1=0x…` with a lower-case address. For
 * wallets whose owner it verifies, the signer refuses transactions with a contract that only the server's settings
 * contain.
 */
export function namedContracts({
  swapRouters,
  rewardDistributors,
}: Pick<BuildingSettings, 'swapRouters' | 'rewardDistributors'>): string[] {
  const routers = [...swapRouters].flatMap(([caip2, { router, wrapped }]) => [
    `router ${caip2}=${router}`,
    ...(wrapped === undefined ? [] : [`wrapped asset ${caip2}=${wrapped}`]),
  ]);
  const distributors = [...rewardDistributors].map(
    ([caip2, address]) => `reward distributor ${caip2}=${address}`,
  );
  return [...routers, ...distributors].map((text) => text.toLowerCase());
}

/**
 * Thrown when the signed request does not determine the transaction, or when the signer lacks a setting for the
 * comparison.
 */
export class NotComparableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotComparableError';
  }
}

/** A signature that a caller may request several times for the same signed request. */
export interface SpendingTask {
  /**
   * Identifies what can take effect at most once, for example a nonce. Two transactions signed for one slot exclude
   * each other on the chain.
   */
  readonly slot: string;
  /** Set for an action that the server builds. Each role is counted separately. */
  readonly role?: BuiltPart['role'] | undefined;
  /** The number of slots that the request may occupy at the same time. */
  readonly atOnce: number;
  /** In wei. Undefined if the server fills in no fee. */
  readonly fee: { readonly amount: bigint; readonly ceiling: bigint } | undefined;
}

interface AskedOfWallet {
  readonly body: SignedRequestContent['body'];
  /** The part of the path after the wallet id. */
  readonly subpath: string;
  /** The part that the task plays in an action that the server builds; undefined if it is not compared. */
  readonly builtPart?: BuiltPart | undefined;
}

/**
 * Determines what a signature takes from the request's signing budget. Returns undefined if a repetition adds
 * nothing: a request that contains everything to be signed always has the same effect, and a delegation to our own
 * smart contracts moves no funds.
 */
export function spendingOf(
  { body, subpath, builtPart }: AskedOfWallet,
  task: WalletTask,
  configured: ConfiguredCeilings | undefined,
): SpendingTask | undefined {
  if (task.kind !== 'sign') return undefined;
  const isAsked = subpath === '/rpc' && body.method === task.method;
  if (task.method === 'eth_sign7702Authorization') {
    const { chain_id: chainId, nonce } = task.params as Fields;
    const slot = `delegation ${numberOf(chainId)} ${numberOf(nonce)}`;
    return isAsked ? { slot, atOnce: 1, fee: undefined } : undefined;
  }
  const slot = isAsked ? undefined : slotOf(task);
  if (slot === undefined) return undefined;
  const fee = configured && feeOf({ body, subpath }, task, configured);
  return { slot, role: builtPart?.role, atOnce: builtPart?.atOnce ?? 1, fee };
}

function slotOf({ method, params }: SignTask): string | undefined {
  if (method === 'eth_signTransaction') {
    const { chain_id: chainId, nonce_key: lane, nonce } = (params as { transaction: Fields }).transaction;
    return `transaction ${numberOf(chainId)} ${numberOf(lane)} ${numberOf(nonce)}`;
  }
  if (method === 'eth_signUserOperation') {
    const { chain_id: chainId, contract, user_operation: operation } = params as Fields;
    const { sender, nonce } = operation as Fields;
    return `operation ${numberOf(chainId)} ${contract} ${sender} ${numberOf(nonce)}`.toLowerCase();
  }
  // Blockhashes and times have no order, so a transaction with a different blockhash or time is a different
  // transaction.
  if (method === 'signTransaction' || method === 'tron_signTransaction' || method === 'spark_operation')
    return `${method} ${hash('sha256', canonicalJson(params), 'base64')}`;
  return undefined;
}

function numberOf(value: unknown): bigint {
  return parseQuantity((value ?? 0) as Quantity, '/transaction', 256);
}

function feeOf(
  { body, subpath }: AskedOfWallet,
  { method, params }: SignTask,
  configured: ConfiguredCeilings,
) {
  const { chain_id: ofOperation, transaction, user_operation: operation } = params as Record<string, Fields>;
  const isOperation = method === 'eth_signUserOperation';
  if (!isOperation && method !== 'eth_signTransaction') return undefined;
  if (!isOperation && subpath === '/rpc' && body.method === 'eth_sendTransaction') {
    const asked = (body.params as { transaction: Fields }).transaction;
    // A fee that the request fixes completely needs no ceiling.
    const price = asked.gas_price ?? asked.max_fee_per_gas;
    if (asked.gas_limit !== undefined && price !== undefined) return undefined;
  }
  const caip2 = `eip155:${numberOf(isOperation ? ofOperation : transaction?.chain_id)}`;
  return {
    amount: isOperation ? operationFee(operation as never) : transactionFee(transaction ?? {}),
    ceiling: ceilingsOf(caip2, configured.get(caip2)).fee,
  };
}
