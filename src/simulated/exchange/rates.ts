/** CHOICE: what the solver takes of every input, in hundredths of a percent. */
const RELAYER_FEE_BPS = 12n;

const WHOLE_BPS = 10_000n;

/** A price in US dollars, `digits / 10^scale`. */
interface Price {
  readonly digits: bigint;
  readonly scale: number;
}

/** One side of an exchange: what it is worth, and how finely it is counted. */
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

/** What is paid and what arrives. `rawInput`, `relayerFee` and `appFee` are in base units of the source. */
export interface Rate {
  readonly rawInput: bigint;
  readonly rawOutput: bigint;
  readonly relayerFee: bigint;
  readonly appFee: bigint;
}

/** Whether the fees take all of any input: there is no rate then. */
export function isAllFees(appFeeBps: number): boolean {
  return BigInt(appFeeBps) + RELAYER_FEE_BPS >= WHOLE_BPS;
}

/**
 * What arrives for an input. Every rounding is against the user, so that output and fees are together never worth more
 * than the input. Undefined when nothing would arrive. `appFeeBps` must
 * not make it all fees.
 */
export function rateOfInput(terms: RateTerms, rawInput: bigint): Rate | undefined {
  const { numerator, denominator } = ratioOf(terms);
  const left = leftOf(terms);
  // output = floor(floor(input * (1 - fees)) * ratio)
  const rawOutput = (((rawInput * left) / WHOLE_BPS) * numerator) / denominator;
  return rawOutput === 0n ? undefined : { rawInput, rawOutput, ...feesOf(terms, rawInput) };
}

/** The least input for an output. */
export function rateOfOutput(terms: RateTerms, rawOutput: bigint): Rate {
  const { numerator, denominator } = ratioOf(terms);
  const left = leftOf(terms);
  // The least i with floor(i * left / 10000) >= needed is ceil(needed * 10000 / left).
  const needed = ceilingOf(rawOutput * denominator, numerator);
  const rawInput = ceilingOf(needed * WHOLE_BPS, left);
  return { rawInput, rawOutput, ...feesOf(terms, rawInput) };
}

/** Base units that a number of whole US dollars buys, rounded down. */
export function rawWorth(dollars: bigint, { price, decimals }: Side): bigint {
  const { digits, scale } = readPrice(price);
  return (dollars * 10n ** BigInt(scale + decimals)) / digits;
}

/** Base units of the destination for one of the source, as a fraction. */
function ratioOf({ source, destination }: RateTerms): { numerator: bigint; denominator: bigint } {
  const [from, to] = [readPrice(source.price), readPrice(destination.price)];
  return {
    numerator: from.digits * 10n ** BigInt(to.scale + destination.decimals),
    denominator: to.digits * 10n ** BigInt(from.scale + source.decimals),
  };
}

/** What the fees leave of an input, in hundredths of a percent. */
function leftOf({ appFeeBps }: RateTerms): bigint {
  return WHOLE_BPS - RELAYER_FEE_BPS - BigInt(appFeeBps);
}

/** Both fees, together the input less what is exchanged; the last unit is the relayer's. */
function feesOf(terms: RateTerms, rawInput: bigint): Pick<Rate, 'relayerFee' | 'appFee'> {
  const fees = rawInput - (rawInput * leftOf(terms)) / WHOLE_BPS;
  const appFee = (rawInput * BigInt(terms.appFeeBps)) / WHOLE_BPS;
  return { relayerFee: fees - appFee, appFee };
}

function readPrice(text: string): Price {
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

function ceilingOf(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
