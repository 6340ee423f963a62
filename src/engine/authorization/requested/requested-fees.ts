import {
  FeeAboveCeilingError,
  type FeeExcess,
  type FeeFields,
  feeExcess,
  type OperationFees,
  operationFeeExcess,
} from '../../actions/filled-fees.ts';
import { ceilingsOf, type EvmCeilings } from '../../assets/fee-ceilings.ts';
import { parseQuantity, type Quantity } from '../../signing/fields.ts';
import type { SignedRequestContent } from '../signed-evidence.ts';
import type { WalletTask } from './match-task.ts';

/** Fee ceilings that override the defaults, by chain. The operator sets them. */
export type ConfiguredCeilings = ReadonlyMap<string, Partial<EvmCeilings>>;

interface AskedOfWallet {
  readonly body: SignedRequestContent['body'];
  /** The part of the path after the wallet id. */
  readonly subpath: string;
}

/**
 * Requires that a fee which the server has filled in is within the ceilings of its chain. The caller must have
 * checked that the request asks for this task, so fields that the request sets are unchanged.
 *
 * @param request undefined for an automation.
 * @throws FeeAboveCeilingError; SigningInputError for a number that cannot be read.
 */
export function requireFeesBelow(
  request: AskedOfWallet | undefined,
  task: WalletTask,
  configured: ConfiguredCeilings,
): void {
  if (task.kind !== 'sign' || isWhole(request, task.method)) return;
  const { chain_id: chainId, excessIn } = feesOf(request, task);
  if (excessIn === undefined) return;
  const caip2 = `eip155:${parseQuantity(chainId ?? 0, '/transaction/chain_id', 256)}`;
  const excess = excessIn(ceilingsOf(caip2, configured.get(caip2)));
  if (excess === undefined) return;
  const { unit, amount, ceiling } = excess;
  throw new FeeAboveCeilingError(
    `the signer was asked for ${amount} ${unit} on \`${caip2}\`, more than its ceiling of ${ceiling}; nothing was signed or sent`,
  );
}

/** Returns whether the request itself contains everything that is signed. */
function isWhole(request: AskedOfWallet | undefined, method: string): boolean {
  return request?.subpath === '/rpc' && request.body.method === method;
}

interface FilledFees {
  readonly chain_id?: Quantity | undefined;
  /**
   * Returns the excess if a fee is above the ceilings. Undefined if the task has no fee, or if the caller set the fee.
   */
  readonly excessIn?: (ceilings: EvmCeilings) => FeeExcess | undefined;
}

/**
 * Returns the fees that the server has filled in.
 *
 * NOTE: the fee of a Solana or Tron transaction is not checked here, because it is compared with the request like the
 * rest of the transaction.
 */
function feesOf(request: AskedOfWallet | undefined, { method, params }: SignTask): FilledFees {
  if (method === 'eth_signTransaction') {
    const { transaction } = params as { transaction: FeeFields & Pick<FilledFees, 'chain_id'> };
    const asked = askedFees(request);
    return { chain_id: transaction.chain_id, excessIn: (most) => feeExcess(asked, transaction, most) };
  }
  if (method !== 'eth_signUserOperation') return {};
  const { chain_id: chainId, user_operation: operation } = params as {
    chain_id: Quantity;
    user_operation: OperationFees;
  };
  return { chain_id: chainId, excessIn: (most) => operationFeeExcess(operation, most) };
}

type SignTask = Extract<WalletTask, { kind: 'sign' }>;

/** Returns the fee fields that the request itself sets. */
function askedFees(request: AskedOfWallet | undefined): FeeFields {
  if (request?.subpath !== '/rpc' || request.body.method !== 'eth_sendTransaction') return {};
  return (request.body.params as { transaction: FeeFields }).transaction;
}
