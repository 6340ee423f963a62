import { invalidQuery } from '../../../errors.ts';
import type { GasSpendResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { decimalText } from '../../wallets/balances/decimal.ts';
import { costInUsd, type GasPaid } from './gas-cost.ts';

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
 * CHOICE: at the prices of now, since those of then are not kept, and exact: the gas of a rollup is less than a cent.
 *
 * @throws ApiError invalid_data for a span that ends before it begins or is longer than 30 days.
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
