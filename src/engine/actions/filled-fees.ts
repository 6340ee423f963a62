import type { EvmCeilings } from '../assets/fee-ceilings.ts';
import { parseQuantity, type Quantity } from '../signing/fields.ts';

// Compares fees that the server fills in with the ceilings of the chain. The server does this when it fills them in,
// and the signer before it signs. Both use this code, so the signer rejects nothing that an honest server requests.

/** The fields of a transaction that determine its fee. */
export interface FeeFields {
  readonly gas_limit?: Quantity | undefined;
  readonly gas_price?: Quantity | undefined;
  readonly max_fee_per_gas?: Quantity | undefined;
  readonly max_priority_fee_per_gas?: Quantity | undefined;
}

/** The fields of a user operation that determine its fee. */
export interface OperationFees {
  readonly call_gas_limit: Quantity;
  readonly verification_gas_limit: Quantity;
  readonly pre_verification_gas: Quantity;
  readonly max_fee_per_gas: Quantity;
  readonly paymaster_verification_gas_limit?: Quantity | undefined;
  readonly paymaster_post_op_gas_limit?: Quantity | undefined;
}

/** A fee or gas value that is above its ceiling. */
export interface FeeExcess {
  readonly unit: string;
  readonly amount: bigint;
  readonly ceiling: bigint;
}

/** Thrown when a filled-in fee is above the ceiling of its chain. */
export class FeeAboveCeilingError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FeeAboveCeilingError';
  }
}

/**
 * Finds the part of a transaction's fee that exceeds a ceiling. Returns undefined if none does. Values that the
 * caller has set are not limited: gas, price, or the whole fee if the caller sets both.
 *
 * NOTE: if the caller sets only the tip, the price is filled in on top of the tip. So the tip is added to the ceiling
 * of the price.
 *
 * @param asked the transaction as the caller sent it; empty if the caller set no fee fields.
 * @param given the same transaction with all fees filled in.
 * @throws SigningInputError for a number that cannot be read.
 */
export function feeExcess(asked: FeeFields, given: FeeFields, ceilings: EvmCeilings): FeeExcess | undefined {
  const gas = amountOf(given, 'gas_limit');
  const tip = amountOf(given, 'max_priority_fee_per_gas');
  const isTipNamed = asked.max_priority_fee_per_gas !== undefined;
  const isGasNamed = asked.gas_limit !== undefined;
  const limits: Limit[] = [];
  if (!isGasNamed) limits.push(['gas', gas, ceilings.gas]);
  if (!isTipNamed) limits.push(['wei per gas as a tip', tip, ceilings.maxPriorityFeePerGas]);
  for (const field of ['gas_price', 'max_fee_per_gas'] as const) {
    const price = amountOf(given, field);
    const isNamed = asked[field] !== undefined;
    const most = ceilings.maxFeePerGas + (isTipNamed ? tip : 0n);
    if (!isNamed) limits.push(['wei per gas', price, most]);
    if (!isNamed || !isGasNamed) limits.push(['wei as the fee', gas * price, ceilings.fee]);
  }
  return firstAbove(limits);
}

/**
 * Finds the part of a user operation's fee that exceeds a ceiling. Returns undefined if none does. All of its gas
 * counts, because without a paymaster the account pays for it. The tip has no separate ceiling, because it is the
 * whole price where blocks have no base fee.
 *
 * @throws SigningInputError for a number that cannot be read.
 */
export function operationFeeExcess(operation: OperationFees, ceilings: EvmCeilings): FeeExcess | undefined {
  const gas = operationGas(operation);
  const price = amountOf(operation, 'max_fee_per_gas');
  return firstAbove([
    ['gas', gas, ceilings.gas],
    ['wei per gas', price, ceilings.maxFeePerGas],
    ['wei as the fee', gas * price, ceilings.fee],
  ]);
}

/** Returns the maximum that a transaction pays for its gas, in wei. */
export function transactionFee(given: FeeFields): bigint {
  const [legacy, dynamic] = [amountOf(given, 'gas_price'), amountOf(given, 'max_fee_per_gas')];
  return amountOf(given, 'gas_limit') * (legacy > dynamic ? legacy : dynamic);
}

/** Returns the maximum that a user operation pays for its gas, in wei. */
export function operationFee(operation: OperationFees): bigint {
  return operationGas(operation) * amountOf(operation, 'max_fee_per_gas');
}

function operationGas(operation: OperationFees): bigint {
  return gasFields.reduce((sum, field) => sum + amountOf(operation, field), 0n);
}

const gasFields = [
  ...(['call_gas_limit', 'verification_gas_limit', 'pre_verification_gas'] as const),
  ...(['paymaster_verification_gas_limit', 'paymaster_post_op_gas_limit'] as const),
];

type Limit = readonly [unit: string, amount: bigint, ceiling: bigint];

function firstAbove(limits: readonly Limit[]): FeeExcess | undefined {
  const [unit, amount, ceiling] = limits.find(([, asked, most]) => asked > most) ?? [];
  if (unit === undefined || amount === undefined || ceiling === undefined) return undefined;
  return { unit, amount, ceiling };
}

function amountOf<Field extends string>(
  fields: Readonly<Partial<Record<Field, Quantity | undefined>>>,
  field: Field,
): bigint {
  return parseQuantity(fields[field] ?? 0, `/transaction/${field}`, 256);
}
