/** CHOICE: the solver's fee in basis points of the input. */
const RELAYER_FEE_BPS = 12n;

const FULL_BPS = 10_000n;

/** A price in US dollars: `digits / 10^scale`. */
interface Price {
  readonly digits: bigint;
  readonly scale: number;
}

/** The price and decimals of one side of an exchange. */
export interface Side {
  /** US dollars for one unit, as a decimal string above 0. */
  readonly price: string;
  readonly decimals: number;
}

export interface RateTerms {
  readonly source: Side;
  readonly destination: Side;
  readonly appFeeBps: number;
}

/** Input, output and fees. `rawInput`, `relayerFee` and `appFee` are in base units of the source asset. */
export interface Rate {
  readonly rawInput: bigint;
  readonly rawOutput: bigint;
  readonly relayerFee: bigint;
  readonly appFee: bigint;
}

/** Returns whether the fees would consume the whole input, so that there is no rate. */
export function exceedsInput(appFeeBps: number): boolean {
  return BigInt(appFeeBps) + RELAYER_FEE_BPS >= FULL_BPS;
}

/**
 * Computes the output for an input. Returns undefined if the output is zero. Rounds in favor of the exchange, so
 * output and fees are never worth more than the input. Precondition: `exceedsInput(terms.appFeeBps)` is false.
 */
export function rateOfInput(terms: RateTerms, rawInput: bigint): Rate | undefined {
  const { numerator, denominator } = ratioOf(terms);
  const netBps = netBpsOf(terms);
  // output = floor(floor(input * (1 - fees)) * ratio)
  const rawOutput = (((rawInput * netBps) / FULL_BPS) * numerator) / denominator;
  return rawOutput === 0n ? undefined : { rawInput, rawOutput, ...feesOf(terms, rawInput) };
}

/** Computes the smallest input for an output. */
export function rateOfOutput(terms: RateTerms, rawOutput: bigint): Rate {
  const { numerator, denominator } = ratioOf(terms);
  const netBps = netBpsOf(terms);
  // The smallest i with floor(i * net / 10000) >= needed is ceil(needed * 10000 / net).
  const needed = ceilingOf(rawOutput * denominator, numerator);
  const rawInput = ceilingOf(needed * FULL_BPS, netBps);
  return { rawInput, rawOutput, ...feesOf(terms, rawInput) };
}

/** Returns the amount in base units that is worth a number of US dollars, rounded down. */
export function rawAmountWorth(dollars: bigint, { price, decimals }: Side): bigint {
  const { digits, scale } = readPrice(price);
  return (dollars * 10n ** BigInt(scale + decimals)) / digits;
}

/** Returns the base units of the destination per base unit of the source, as a fraction. */
function ratioOf({ source, destination }: RateTerms): { numerator: bigint; denominator: bigint } {
  const [from, to] = [readPrice(source.price), readPrice(destination.price)];
  return {
    numerator: from.digits * 10n ** BigInt(to.scale + destination.decimals),
    denominator: to.digits * 10n ** BigInt(from.scale + source.decimals),
  };
}

/** Returns the part of the input that remains after fees, in basis points. */
function netBpsOf({ appFeeBps }: RateTerms): bigint {
  return FULL_BPS - RELAYER_FEE_BPS - BigInt(appFeeBps);
}

/**
 * Returns both fees. Their sum is the input minus the exchanged amount. The relayer's fee includes the remainder from
 * rounding.
 */
function feesOf(terms: RateTerms, rawInput: bigint): Pick<Rate, 'relayerFee' | 'appFee'> {
  const fees = rawInput - (rawInput * netBpsOf(terms)) / FULL_BPS;
  const appFee = (rawInput * BigInt(terms.appFeeBps)) / FULL_BPS;
  return { relayerFee: fees - appFee, appFee };
}

function readPrice(text: string): Price {
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

function ceilingOf(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
