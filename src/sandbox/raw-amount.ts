import { invalidField } from '../errors.ts';

/** The amount in the smallest unit, of which one of the two is given. Throws ApiError invalid_data. */
export function rawAmountOf(
  body: { readonly amount?: string | undefined; readonly raw_amount?: string | undefined },
  decimals: number,
): bigint {
  const { amount, raw_amount: raw } = body;
  if ((amount === undefined) === (raw === undefined)) {
    throw invalidField('/amount', 'expected either `amount` or `raw_amount`');
  }
  if (raw !== undefined) return BigInt(raw);
  const [whole = '', fraction = ''] = amount!.split('.');
  if (fraction.length > decimals) {
    throw invalidField('/amount', `expected at most ${decimals} digits after the point`);
  }
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}
