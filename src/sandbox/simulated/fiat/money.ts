import { percentOf, readDecimal } from '../../../engine/assets/decimal.ts';

/** CHOICE: fixed exchange rates in US dollars per unit. Each currency has 100 cents per unit. */
const usdPerUnit = {
  usd: '1',
  eur: '1.1',
  gbp: '1.25',
  brl: '0.2',
  mxn: '0.05',
  cop: '0.00025',
} as const;

/** A currency of the simulated bank. */
export type Currency = keyof typeof usdPerUnit;

/** CHOICE: the bank's fee on deposits, in basis points, rounded down. */
const FEE_BPS = 25n;

const CENTS = 2;

export function isCurrency(text: string): text is Currency {
  return Object.hasOwn(usdPerUnit, text);
}

/**
 * Converts a decimal amount to cents. Returns undefined for more than two decimals, more than 30 digits, or a string
 * that is not a number.
 */
export function centsOf(amount: string): bigint | undefined {
  const match = /^(\d{1,30})(?:\.(\d{1,2}))?$/.exec(amount);
  return match === null ? undefined : BigInt(`${match[1]}${(match[2] ?? '').padEnd(CENTS, '0')}`);
}

export function textOf(cents: bigint): string {
  const digits = String(cents).padStart(CENTS + 1, '0');
  return `${digits.slice(0, -CENTS)}.${digits.slice(-CENTS)}`;
}

export function feeOf(cents: bigint): bigint {
  return (cents * FEE_BPS) / 10_000n;
}

/**
 * Returns the app's fee.
 *
 * CHOICE: a percentage of the whole amount, in addition to the bank's own fee. It is in the currency of the bank
 * account and rounded down to the cent.
 */
export function developerFeeOf(cents: bigint, percent: string): bigint {
  const fee = readDecimal(percent);
  if (fee === undefined) throw new Error('the fee of an app is not a decimal number');
  return percentOf(cents, fee);
}

interface AssetPrice {
  /** US dollars per unit, as a decimal string above 0. */
  readonly price: string;
  readonly decimals: number;
}

/** Returns the amount of an asset that a sum of money buys, in base units, rounded down. */
export function assetWorth(cents: bigint, currency: Currency, { price, decimals }: AssetPrice): bigint {
  const [rate, asset] = [fractionOf(usdPerUnit[currency]), fractionOf(price)];
  // units = cents / 100 · rate / price
  const numerator = cents * rate.digits * asset.scale * 10n ** BigInt(decimals);
  return numerator / (10n ** BigInt(CENTS) * rate.scale * asset.digits);
}

/** Returns the sum of money that an amount of an asset is worth, in cents, rounded down. */
export function centsWorth(rawAmount: bigint, currency: Currency, { price, decimals }: AssetPrice): bigint {
  const [rate, asset] = [fractionOf(usdPerUnit[currency]), fractionOf(price)];
  const numerator = rawAmount * asset.digits * rate.scale * 10n ** BigInt(CENTS);
  return numerator / (10n ** BigInt(decimals) * asset.scale * rate.digits);
}

function fractionOf(text: string): { digits: bigint; scale: bigint } {
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: 10n ** BigInt(fraction.length) };
}
