import { invalidQuery } from '../../errors.ts';
import type { GasSpendResponse } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { add, type Decimal, fromRaw, ZERO } from '../balances/decimal.ts';
import { pricesOf, worthOf, worthText } from '../balances/worth.ts';
import { assetNamed, type KnownAsset } from '../chains/known-assets.ts';
import { chainOfCaip2 } from '../chains/known-chains.ts';

const MAX_SPAN_MS = 30 * 24 * 60 * 60 * 1000;

export interface GasSpendQuery {
  readonly wallet_ids: readonly string[];
  /** Unix ms; counts. */
  readonly start_timestamp: number;
  /** Unix ms; does not count. */
  readonly end_timestamp: number;
}

/**
 * What the app paid for the gas of its wallets' sponsored transactions that were made in a span of time, in US dollars.
 *
 * CHOICE: at the prices of now, since those of then are not kept. Gas on test networks costs nothing.
 *
 * @throws ApiError invalid_data for a span that ends before it begins or is longer than 30 days.
 */
export async function getAppGasSpend(
  context: Pick<OperationContext, 'app' | 'em' | 'prices'>,
  query: GasSpendQuery,
): Promise<GasSpendResponse> {
  requireSpan(query);
  const fees = await sponsoredFees(context, query);
  const assets = fees.map(({ asset }) => asset);
  const priceOf = await pricesOf(context, assets, 'usd');
  const worths = fees.map(({ asset, amount }) => worthOf(amount, priceOf(asset) ?? ZERO));
  return { value: worthText(worths.reduce(add, ZERO)), currency: 'usd' };
}

function requireSpan({ start_timestamp: startMs, end_timestamp: endMs }: GasSpendQuery): void {
  if (endMs <= startMs) throw invalidQuery('end_timestamp', 'expected a time after `start_timestamp`');
  if (endMs - startMs > MAX_SPAN_MS) throw invalidQuery('end_timestamp', 'expected at most 30 days in all');
}

async function sponsoredFees(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  query: GasSpendQuery,
): Promise<{ asset: KnownAsset; amount: Decimal }[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select(['caip2', 'fee_paid'])
    .where('app_id', '=', app.id)
    .where('wallet_id', 'in', query.wallet_ids)
    .where('is_sponsored', '=', 1)
    .where('fee_paid', 'is not', null)
    .where('created_at_ms', '>=', query.start_timestamp)
    .where('created_at_ms', '<', query.end_timestamp)
    .execute();
  return rows.flatMap(({ caip2, fee_paid: fee }) => {
    const chain = chainOfCaip2(caip2);
    const native = chain?.native;
    if (fee === null || chain === undefined || native === undefined) return [];
    // On Arc the gas is a named token under its other face.
    const asset = assetNamed(chain, native.asset) ?? { ...native, chain, tokenAddress: null };
    return [{ asset, amount: fromRaw(BigInt(fee), native.decimals) }];
  });
}
