/** An exact decimal number: `digits / 10^scale`. Money is never a float. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

export const ZERO: Decimal = { digits: 0n, scale: 0 };

const DECIMAL = /^\d+(\.\d+)?$/;

/**
 * CHOICE: several times the number of digits of 2^256 with 255 decimals. Arithmetic on longer numbers takes more than
 * linear time, and a signer also reads bodies that no server has validated.
 */
const MAX_CHARACTERS = 1_000;

/**
 * Parses a decimal string such as `1.50`. Returns undefined for signs, exponents, any other string, and more than
 * 1,000 characters.
 */
export function readDecimal(text: string): Decimal | undefined {
  if (text.length > MAX_CHARACTERS || !DECIMAL.test(text)) return undefined;
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Converts base units (for example wei) to whole units of the asset. */
export function fromRaw(rawAmount: bigint, decimals: number): Decimal {
  return { digits: rawAmount, scale: decimals };
}

/**
 * Converts to base units of an asset. Returns undefined if the result would not be a whole number of base units, so
 * trailing zeros are allowed.
 */
export function toRaw({ digits, scale }: Decimal, decimals: number): bigint | undefined {
  if (scale <= decimals) return digits * 10n ** BigInt(decimals - scale);
  const step = 10n ** BigInt(scale - decimals);
  return digits % step === 0n ? digits / step : undefined;
}

export function add(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { digits: rescale(a, scale) + rescale(b, scale), scale };
}

export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/** Returns a percentage of an amount, rounded down. */
export function percentOf(rawAmount: bigint, percent: Decimal): bigint {
  return (rawAmount * percent.digits) / (100n * 10n ** BigInt(percent.scale));
}

/** Returns `a / b`, rounded half up to the given number of decimal places. `b` must not be zero. */
export function divide(a: Decimal, b: Decimal, places: number): Decimal {
  // a / b = (a.digits * 10^b.scale) / (b.digits * 10^a.scale)
  const dividend = a.digits * 10n ** BigInt(b.scale + places);
  return { digits: roundedQuotient(dividend, b.digits * 10n ** BigInt(a.scale)), scale: places };
}

/** Rounds half up to the given number of decimal places. */
export function round(value: Decimal, places: number): Decimal {
  if (value.scale <= places) return { digits: rescale(value, places), scale: places };
  const step = 10n ** BigInt(value.scale - places);
  return { digits: roundedQuotient(value.digits, step), scale: places };
}

/** Writes the number in its shortest form, without superfluous zeros. */
export function decimalText(value: Decimal): string {
  const text = fixedText(value);
  return text.includes('.') ? text.replace(/(?:\.|(?<![.0]))0+$/, '') : text;
}

/** Writes the number with all its decimal places, including trailing zeros. */
export function fixedText({ digits, scale }: Decimal): string {
  const text = digits.toString().padStart(scale + 1, '0');
  return scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`;
}

function rescale({ digits, scale }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(to - scale);
}

function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}
