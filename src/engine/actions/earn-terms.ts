import type { EarnRequest } from '../../generated/schemas.ts';
import { decimalText, fromRaw, readDecimal, toRaw } from '../assets/decimal.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid } from './request-terms-error.ts';

/** The amount of a deposit into a vault, or of a withdrawal. */
export interface EarnAmount {
  /** The amount in base units of the vault's asset, above 0. */
  readonly rawAmount: bigint;
  /** JSON pointer to the amount in the body. */
  readonly pointer: string;
}

/**
 * Reads the amount of a body.
 *
 * @param decimals the decimals of the vault's asset.
 * @throws RequestTermsError invalid_data naming the field.
 */
export function readEarnAmount(body: EarnRequest, decimals: number): EarnAmount {
  if (body.amount !== undefined && body.raw_amount !== undefined) {
    throw invalid('/raw_amount', 'expected `amount` or `raw_amount`, not both');
  }
  const pointer = body.amount === undefined ? '/raw_amount' : '/amount';
  const rawAmount = body.amount === undefined ? readRaw(body.raw_amount) : readUnits(body.amount, decimals);
  if (rawAmount === 0n) throw invalid(pointer, 'expected an amount above 0');
  if (rawAmount >= 2n ** 256n) throw invalid(pointer, 'expected an amount below 2^256');
  return { rawAmount, pointer };
}

function readRaw(text: string | undefined): bigint {
  if (text === undefined) throw invalid('/raw_amount', 'expected `amount` or `raw_amount`');
  return BigInt(text);
}

function readUnits(text: string, decimals: number): bigint {
  const amount = readDecimal(text);
  if (amount === undefined) throw invalid('/amount', 'expected a decimal number above 0');
  const rawAmount = toRaw(amount, decimals);
  if (rawAmount === undefined) {
    throw invalid('/amount', `expected at most ${decimals} decimals, as the asset of the vault has`);
  }
  return rawAmount;
}

/**
 * The action that policies evaluate: the body with both spellings of the amount.
 *
 * CHOICE: `amount` is written without superfluous zeros, whichever spelling was sent.
 */
export function earnAction(
  method: 'earn_deposit' | 'earn_withdraw',
  body: EarnRequest,
  { rawAmount, decimals }: { readonly rawAmount: bigint; readonly decimals: number },
): PolicyAction {
  const requestBody = {
    ...body,
    amount: decimalText(fromRaw(rawAmount, decimals)),
    raw_amount: String(rawAmount),
  };
  return { method, units: [{ label: method, requestBody }] };
}

/** The action that policies evaluate when fees of a vault are collected. */
export function feeCollectionAction(body: object): PolicyAction {
  const method = 'earn_fee_collect';
  return { method, units: [{ label: method, requestBody: { ...body } }] };
}

/** The action that policies evaluate for a claim of rewards: the body, with its chain in both spellings. */
export function claimAction(body: object, { name, caip2 }: { name: string; caip2: string }): PolicyAction {
  const method = 'earn_incentive_claim';
  return { method, units: [{ label: method, requestBody: { ...body, chain: name, caip2 } }] };
}
