import { decimalText } from '../../../assets/decimal.ts';
import { invalidQuery } from '../../../errors.ts';
import type { GasSpendResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { costInUsd, type GasPaid } from './gas-cost.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

const MAX_SPAN_MS = 30 * 24 * 60 * 60 * 1000;

export interface GasSpendQuery {
  readonly wallet_ids: readonly string[];
  /** Unix ms, inclusive. */
  readonly start_timestamp: number;
  /** Unix ms, exclusive. */
  readonly end_timestamp: number;
}

/**
 * What the app paid in a time range for the gas of its wallets' sponsored transactions, in US dollars.
 *
 * CHOICE: priced at today's rates, because past rates are not kept, and not rounded: gas on a rollup costs less than
 * a cent.
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
