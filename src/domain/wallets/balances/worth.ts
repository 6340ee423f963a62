import type { OperationContext } from '../../../operation-context.ts';
import type { KnownAsset } from '../../access/chains/known-assets.ts';
import {
  type Decimal,
  decimalText,
  divide,
  fixedText,
  multiply,
  readDecimal,
  round,
  ZERO,
} from './decimal.ts';

/** Cents: worths are told to two places, half up. */
const WORTH_PLACES = 2;

export type Currency = 'usd' | 'eur';

/** What one unit of an asset costs; undefined where nobody knows. */
export type PriceOf = (asset: KnownAsset) => Decimal | undefined;

/**
 * The prices of assets in a currency. What is on a test network is worth nothing, whatever its name.
 *
 * CHOICE: one euro is what one EURC costs, so that one source of prices serves both currencies.
 */
export async function pricesOf(
  { prices }: Pick<OperationContext, 'prices'>,
  assets: readonly KnownAsset[],
  currency: Currency,
): Promise<PriceOf> {
  const real = assets.filter(({ chain }) => !chain.isTestnet);
  const symbols = new Set(real.map(({ asset }) => asset));
  if (symbols.size === 0) return () => ZERO;
  if (currency === 'eur') symbols.add(EURO);
  const inUsd = await prices.inUsd([...symbols]);
  const usdOf = (symbol: string): Decimal | undefined => readDecimal(inUsd.get(symbol) ?? '');
  const euro = usdOf(EURO);
  return ({ asset, chain }) => {
    if (chain.isTestnet) return ZERO;
    const usd = usdOf(asset);
    if (currency === 'usd' || usd === undefined) return usd;
    return euro === undefined || euro.digits === 0n ? undefined : divide(usd, euro, RATE_PLACES);
  };
}

const EURO = 'eurc';
/** Places of a price in euros: a whole Bitcoin's worth of dust stays exact to the cent. */
const RATE_PLACES = 18;

/** What an amount is worth at a price. */
export function worthOf(amount: Decimal, price: Decimal): Decimal {
  return multiply(amount, price);
}

/** A worth for people: `3102.40`, and `0` for nothing at all. */
export function worthText(worth: Decimal): string {
  return worth.digits === 0n ? '0' : fixedText(round(worth, WORTH_PLACES));
}

/** The price of one unit as text, with two places at least. */
export function priceText(price: Decimal): string {
  const places = decimalText(price).split('.')[1]?.length ?? 0;
  return price.digits === 0n ? '0' : fixedText(round(price, Math.max(places, WORTH_PLACES)));
}
