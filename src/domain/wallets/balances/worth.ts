import {
  type Decimal,
  decimalText,
  divide,
  fixedText,
  multiply,
  readDecimal,
  round,
  ZERO,
} from '../../../assets/decimal.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import type { OperationContext } from '../../../operation-context.ts';

/** Values are shown in cents, rounded half up. */
const WORTH_PLACES = 2;

export type Currency = 'usd' | 'eur';

/** The price of one unit of an asset; undefined when unknown. */
export type PriceOf = (asset: KnownAsset) => Decimal | undefined;

/**
 * The prices of assets in a currency. Assets on test networks are worth nothing.
 *
 * CHOICE: one euro costs as much as one EURC, so that one price source serves both currencies.
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
/** Decimal places of a price in euros, enough for results exact to the cent. */
const RATE_PLACES = 18;

/** The value of an amount at a price. */
export function worthOf(amount: Decimal, price: Decimal): Decimal {
  return multiply(amount, price);
}

/** A displayed value: `3102.40`, or `0` for zero. */
export function worthText(worth: Decimal): string {
  return worth.digits === 0n ? '0' : fixedText(round(worth, WORTH_PLACES));
}

/** The price of one unit as text, with at least two decimals. */
export function priceText(price: Decimal): string {
  const places = decimalText(price).split('.')[1]?.length ?? 0;
  return price.digits === 0n ? '0' : fixedText(round(price, Math.max(places, WORTH_PLACES)));
}
