import {
  type FeeFields,
  feeExcess,
  type OperationFees,
  operationFeeExcess,
} from '../../../engine/actions/filled-fees.ts';
import { ApiError } from '../../../errors.ts';
import type { EvmChain } from '../../../ports/chains.ts';

/*
 * Ceilings limit the fees and gas that a chain's nodes suggest. They do not limit values that the caller sets. The
 * signer compares filled-in values with the same ceilings.
 *
 * CHOICE: policies have no condition on the fee, because the contract lists the fields of `ethereum_transaction`. The
 * explanation of a policy decision shows the fee as `fee` of the decoded action.
 */

type Fees = Awaited<ReturnType<EvmChain['fees']>>;

/** @throws ApiError transaction_broadcast_failure when the suggested prices exceed the ceilings. */
export function requirePricesBelow(chain: EvmChain, { maxFeePerGas, maxPriorityFeePerGas }: Fees): void {
  const { ceilings } = chain;
  if (ceilings === undefined) return;
  requireBelow(chain, 'wei per gas', maxFeePerGas, ceilings.maxFeePerGas);
  requireBelow(chain, 'wei per gas as a tip', maxPriorityFeePerGas ?? 0n, ceilings.maxPriorityFeePerGas);
}

/** @throws ApiError transaction_broadcast_failure when the estimated gas exceeds the ceiling. */
export function requireGasBelow(chain: EvmChain, gas: bigint): void {
  if (chain.ceilings !== undefined) requireBelow(chain, 'gas', gas, chain.ceilings.gas);
}

/** @throws ApiError transaction_broadcast_failure when the whole fee, in wei, exceeds the ceiling. */
export function requireFeeBelow(chain: EvmChain, fee: bigint): void {
  if (chain.ceilings !== undefined) requireBelow(chain, 'wei as the fee', fee, chain.ceilings.fee);
}

/**
 * @param asked the fields that the caller has set.
 * @throws ApiError transaction_broadcast_failure when the filled-in fields exceed the ceilings.
 */
export function requireFilledBelow(chain: EvmChain, asked: FeeFields, given: FeeFields): void {
  if (chain.ceilings === undefined) return;
  const excess = feeExcess(asked, given, chain.ceilings);
  if (excess !== undefined) requireBelow(chain, excess.unit, excess.amount, excess.ceiling);
}

/** @throws ApiError transaction_broadcast_failure when the gas and the price of an operation exceed the ceilings. */
export function requireOperationBelow(chain: EvmChain, operation: OperationFees): void {
  if (chain.ceilings === undefined) return;
  const excess = operationFeeExcess(operation, chain.ceilings);
  if (excess !== undefined) requireBelow(chain, excess.unit, excess.amount, excess.ceiling);
}

function requireBelow({ caip2 }: EvmChain, unit: string, asked: bigint, ceiling: bigint): void {
  if (asked <= ceiling) return;
  throw new ApiError(
    'transaction_broadcast_failure',
    `the nodes of \`${caip2}\` ask for ${asked} ${unit}, more than the ceiling of ${ceiling}; nothing was signed or sent`,
  );
}
