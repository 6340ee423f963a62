import { divide, readDecimal, round } from '../../../assets/decimal.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import { ApiError } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { offerSwap } from '../swaps/plan-swap.ts';

/** A deposit to estimate. */
export interface Conversion {
  readonly source: KnownAsset;
  readonly destination: KnownAsset;
  /** In base units of the source. */
  readonly rawAmount: bigint;
  readonly slippageBps?: number | undefined;
  /** The address of the destination wallet, where it is known. */
  readonly recipient?: string | undefined;
}

/** CHOICE: half a percent, as swaps have it. */
const DEFAULT_SLIPPAGE_BPS = 50;

// Quotes name a payer and a recipient, but reserve nothing. No key of these addresses is known.
const placeholders: Readonly<Record<string, string>> = {
  ethereum: '0x000000000000000000000000000000000000dEaD',
  solana: '1nc1nerator11111111111111111111111111111111',
  tron: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
};

/**
 * Asks who would convert a deposit, and what would arrive. Call it outside any database transaction.
 *
 * Result: in base units of the destination.
 *
 * @throws ApiError not_supported for a pair that is not exchanged; invalid_data with the pointer `/base_amount` for an
 * amount that is not; transaction_broadcast_failure when the chain or the exchange cannot be reached.
 */
export async function estimateConversion(
  context: PlanContext,
  { source, destination, rawAmount, slippageBps, recipient }: Conversion,
): Promise<bigint> {
  if (isSame(source, destination)) return rawAmount;
  if (source.chain.isTestnet !== destination.chain.isTestnet) {
    throw new ApiError(
      'not_supported',
      '/destination: nothing is exchanged between a test network and a main network',
    );
  }
  const address = placeholders[source.chain.chainType] ?? '';
  const offer = await offerSwap(
    context,
    { address },
    {
      source: sideOf(source),
      destination: sideOf(destination),
      recipient: recipient ?? placeholders[destination.chain.chainType] ?? '',
      ...{ rawAmount, amountType: 'exact_input', appFeeBps: 0 },
      slippageBps: slippageBps ?? DEFAULT_SLIPPAGE_BPS,
    },
  );
  return offer.by === 'route' ? offer.route.rawOutput : offer.exchange.quote.rawOutput;
}

/** Whether nothing has to be exchanged. */
export function isSame(left: KnownAsset, right: KnownAsset): boolean {
  return left.chain === right.chain && left.tokenAddress === right.tokenAddress;
}

function sideOf(asset: KnownAsset) {
  return { chain: asset.chain, tokenAddress: asset.tokenAddress, asset };
}

const TYPICAL_USD = { digits: 100n, scale: 0 };
const TYPICAL_PLACES = 6;

/** CHOICE: a typical deposit is worth $100, or 100 units of an asset without a price. In base units. */
export async function typicalAmount(
  { prices }: Pick<PlanContext, 'prices'>,
  { asset, decimals }: KnownAsset,
): Promise<bigint> {
  const price = readDecimal((await prices.inUsd([asset])).get(asset) ?? '1');
  const places = Math.min(decimals, TYPICAL_PLACES);
  const isPriced = price !== undefined && price.digits > 0n;
  const { digits } = isPriced ? divide(TYPICAL_USD, price, places) : round(TYPICAL_USD, places);
  return digits * 10n ** BigInt(decimals - places);
}
