import { invalidField } from '../errors.ts';

/** The amount in base units; the body has exactly one of `amount` and `raw_amount`. Throws ApiError invalid_data. */
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
    throw invalidField('/amount', `expected at most ${decimals} decimal places, got ${fraction.length}`);
  }
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}
