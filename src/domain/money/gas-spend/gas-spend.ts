import { add, type Decimal, decimalText, fromRaw, ZERO } from '../../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import { invalidQuery } from '../../../errors.ts';
import type { GasSpendResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Tables } from '../../tables.ts';
import { pricesOf, worthOf } from '../../wallets/balances/balances.ts';

/** The network fee of one transaction. */
interface GasPaid {
  readonly caip2: string;
  /** The fee in base units of the chain's native asset. */
  readonly fee: bigint;
}

/**
 * Returns the total gas cost in US dollars at current prices, not rounded.
 *
 * CHOICE: gas on test networks counts as free, and so does gas on chains whose native asset has no price.
 */
export async function costInUsd(
  context: Pick<OperationContext, 'prices'>,
  paid: readonly GasPaid[],
): Promise<Decimal> {
  const gas = paid.flatMap(({ caip2, fee }) => {
    const chain = chainOfCaip2(caip2);
    if (chain?.native === undefined) return [];
    const asset = { ...chain.native, chain, tokenAddress: null };
    return [{ asset, amount: fromRaw(fee, asset.decimals) }];
  });
  const priceOf = await pricesOf(
    context,
    gas.map(({ asset }) => asset),
    'usd',
  );
  return gas.map(({ asset, amount }) => worthOf(amount, priceOf(asset) ?? ZERO)).reduce(add, ZERO);
}

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

const MAX_SPAN_MS = 30 * 24 * 60 * 60 * 1000;

interface GasSpendQuery {
  readonly wallet_ids: readonly string[];
  /** The start of the range, Unix ms, inclusive. */
  readonly start_timestamp: number;
  /** The end of the range, Unix ms, exclusive. */
  readonly end_timestamp: number;
}

/**
 * Returns the amount in US dollars that the app paid in a time range for the gas of sponsored transactions.
 *
 * CHOICE: gas is priced at current rates, because past rates are not kept. The sum is not rounded, because gas on a
 * rollup costs less than a cent.
 *
 * @throws ApiError invalid_data for a range that ends before it starts or is longer than 30 days.
 */
export async function getAppGasSpend(
  context: Pick<OperationContext, 'app' | 'em' | 'prices'>,
  query: GasSpendQuery,
): Promise<GasSpendResponse> {
  requireSpan(query);
  const cost = await costInUsd(context, await sponsoredGas(context, query));
  return { value: decimalText(cost), currency: 'usd' };
}

function requireSpan({ start_timestamp: startMs, end_timestamp: endMs }: GasSpendQuery): void {
  if (endMs <= startMs) throw invalidQuery('end_timestamp', 'expected a time after `start_timestamp`');
  if (endMs - startMs > MAX_SPAN_MS) throw invalidQuery('end_timestamp', 'expected at most 30 days in all');
}

async function sponsoredGas(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  query: GasSpendQuery,
): Promise<GasPaid[]> {
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
  return rows.map(({ caip2, fee_paid: fee }) => ({ caip2, fee: BigInt(fee ?? 0) }));
}
