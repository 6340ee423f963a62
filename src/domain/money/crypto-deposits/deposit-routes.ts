import { createHash } from 'node:crypto';
import { decimalText, divide, fromRaw, readDecimal, round } from '../../../engine/assets/decimal.ts';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  AutomationAssetFilter,
  AutomationAssetSpec,
  CryptoDepositAsset,
  CryptoDepositAssetFilter,
  DepositAccountCryptoQuoteResponse,
  QuoteCryptoDepositRequest,
} from '../../../generated/schemas.ts';
import { type PlanContext, type Planned, unwrapPlan } from '../../../ports/operation-context.ts';
import { matchesFilter, NATIVE } from '../../access/automations/automation.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { offerSwap } from '../swaps/plan-swap.ts';
import { requireRaw } from '../wallet-actions/plan-exchange.ts';
import {
  assetOfText,
  depositChains,
  type GasPayer,
  notSupported,
  requireAssetText,
  requireChainText,
  requireDepositChain,
} from './deposit-chains.ts';

/** A deposit whose conversion is to be estimated. */
interface Conversion {
  readonly source: KnownAsset;
  readonly destination: KnownAsset;
  /** The deposited amount in base units of the source. */
  readonly rawAmount: bigint;
  readonly slippageBps?: number | undefined;
  /** The address of the destination wallet, if it is known. */
  readonly recipient?: string | undefined;
}

/** CHOICE: the default slippage is half a percent, the same as for swaps. */
const DEFAULT_SLIPPAGE_BPS = 50;

// Quotes require a payer and a recipient, but reserve nothing. Nobody has the keys of these addresses.
const placeholders: Readonly<Record<string, string>> = {
  ethereum: '0x000000000000000000000000000000000000dEaD',
  solana: '1nc1nerator11111111111111111111111111111111',
  tron: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
};

/**
 * Estimates the amount that would arrive if a deposit were converted now, in base units of the destination. Call it
 * outside any database transaction.
 *
 * @throws ApiError not_supported for a pair that no service exchanges; invalid_data with the pointer `/base_amount` for
 * an amount that no service exchanges; transaction_broadcast_failure when the chain or the exchange cannot be reached.
 */
async function estimateConversion(
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

/** Returns whether both are the same asset, so that nothing has to be exchanged. */
function isSame(left: KnownAsset, right: KnownAsset): boolean {
  return left.chain === right.chain && left.tokenAddress === right.tokenAddress;
}

function sideOf(asset: KnownAsset) {
  return { chain: asset.chain, tokenAddress: asset.tokenAddress, asset };
}

const TYPICAL_USD = { digits: 100n, scale: 0 };
const TYPICAL_PLACES = 6;

/**
 * Returns the amount of a typical deposit, in base units.
 *
 * CHOICE: $100, or 100 units of an asset without a price.
 */
async function typicalAmount(
  { prices }: Pick<PlanContext, 'prices'>,
  { asset, decimals }: KnownAsset,
): Promise<bigint> {
  const price = readDecimal((await prices.inUsd([asset])).get(asset) ?? '1');
  const places = Math.min(decimals, TYPICAL_PLACES);
  const isPriced = price !== undefined && price.digits > 0n;
  const { digits } = isPriced ? divide(TYPICAL_USD, price, places) : round(TYPICAL_USD, places);
  return digits * 10n ** BigInt(decimals - places);
}

/** A route in the form that requests and the app's settings have. */
interface RouteInput {
  readonly source: CryptoDepositAssetFilter;
  readonly destination: CryptoDepositAsset;
}

/** A route whose names are resolved. */
export interface ResolvedRoute {
  /** Selects the deposits to convert. */
  readonly filter: AutomationAssetFilter;
  readonly destination: AutomationAssetSpec;
  /** The route as responses show it. It names the assets, and a chain only if the request limited the asset to one. */
  readonly shown: RouteInput;
}

/** The wallet to which a route leads, and the address at which its deposits arrive. */
interface RouteTarget {
  readonly wallet: Pick<WalletRow, 'address' | 'chain_type' | 'custody_chain'>;
  /** Whether deposits go to the wallet itself. */
  readonly isOwn: boolean;
  /** JSON pointer of the route in the body. */
  readonly pointer: string;
}

/** A source asset, and whether the request named its chain. */
interface Source {
  readonly asset: KnownAsset;
  readonly isExplicit: boolean;
  readonly pointer: string;
}

/**
 * Resolves the names of a route, and checks that its assets can be exchanged. Call it outside any database transaction.
 *
 * CHOICE: an asset without a chain stands for that asset on every chain where it can be converted. The filters `all`
 * and `exclude` are not limited to convertible assets; a deposit that cannot be converted stays at its address, which
 * is a wallet.
 *
 * @throws ApiError invalid_data for a destination without a chain, or on a chain whose type is not the wallet's;
 * not_supported for unknown assets and chains, chains without a paymaster, and pairs that cannot be exchanged;
 * transaction_broadcast_failure when the exchange cannot be reached.
 */
export async function resolveRoute(
  context: PlanContext,
  { source, destination }: RouteInput,
  target: RouteTarget,
): Promise<ResolvedRoute> {
  const { pointer, isOwn } = target;
  const arriving = readDestination(context, destination, target);
  const payer = isOwn ? 'wallet' : 'paymaster';
  const shownDestination = { asset: arriving.asset, chain: arriving.chain.name };
  const resolved = { destination: specOf(arriving) };
  const at = `${pointer}/source`;
  if (source.mode === 'all' || source.mode === 'exclude') {
    if (depositChains(context, payer).length === 0) {
      throw notSupported(at, 'no chain on which deposits are converted is configured here');
    }
    if (source.mode === 'all') {
      return { ...resolved, filter: source, shown: { source, destination: shownDestination } };
    }
  }
  const values = source.values.map((value, index) => ({ value, pointer: `${at}/values/${index}` }));
  const sources = values.flatMap((each) => readSource(context, each, { payer, arriving, mode: source.mode }));
  const kept =
    source.mode === 'include' ? await requireExchanged(context, sources, { arriving, target, at }) : sources;
  return {
    ...resolved,
    filter: { mode: source.mode, values: distinct(kept.map(({ asset }) => specOf(asset))) },
    shown: {
      source: { mode: source.mode, values: values.map(({ value }) => shownAs(value)) },
      destination: shownDestination,
    },
  };
}

function readDestination(
  context: PlanContext,
  { asset, chain: chainText }: CryptoDepositAsset,
  { wallet, pointer }: RouteTarget,
): KnownAsset {
  const at = `${pointer}/destination`;
  if (chainText === undefined) throw invalidField(`${at}/chain`, 'expected the chain of the destination');
  const chain = requireChainText(chainText, `${at}/chain`);
  const known = requireAssetText(chain, asset, `${at}/asset`);
  if (context.chains.find(chain.caip2) === undefined) {
    throw notSupported(`${at}/chain`, `the chain \`${chain.name}\` is not configured here`);
  }
  const isThere =
    chain.chainType === wallet.chain_type &&
    (wallet.custody_chain === null || wallet.custody_chain === chain.name);
  if (!isThere) throw invalidField(`${at}/chain`, `the wallet is not on \`${chain.name}\``);
  return known;
}

interface Reading {
  readonly payer: GasPayer;
  readonly arriving: KnownAsset;
  readonly mode: 'include' | 'exclude';
}

/**
 * Returns the assets for which one value of a filter stands.
 *
 * @throws ApiError not_supported
 */
function readSource(
  context: PlanContext,
  { value, pointer }: { readonly value: CryptoDepositAsset; readonly pointer: string },
  { payer, arriving, mode }: Reading,
): Source[] {
  if (value.chain !== undefined) {
    const chain = requireChainText(value.chain, `${pointer}/chain`);
    if (mode === 'include') requireDepositChain(context, chain, { payer, pointer: `${pointer}/chain` });
    const asset = requireAssetText(chain, value.asset, `${pointer}/asset`);
    return [{ asset, isExplicit: true, pointer }];
  }
  const found = depositChains(context, payer)
    .filter(({ isTestnet }) => isTestnet === arriving.chain.isTestnet)
    .flatMap((chain) => assetOfText(chain, value.asset) ?? []);
  if (found.length === 0) {
    throw notSupported(`${pointer}/asset`, `no chain is known on which \`${value.asset}\` is converted`);
  }
  return found.map((asset) => ({ asset, isExplicit: false, pointer }));
}

/**
 * Returns the sources that can be exchanged for the destination.
 *
 * @throws ApiError not_supported when none can.
 */
async function requireExchanged(
  context: PlanContext,
  sources: readonly Source[],
  {
    arriving,
    target,
    at,
  }: { readonly arriving: KnownAsset; readonly target: RouteTarget; readonly at: string },
): Promise<Source[]> {
  const asked = await Promise.all(
    sources.map((source) => isExchanged(context, source, { arriving, target })),
  );
  // At the wallet's own address, leave out the destination asset: a deposit of it stays in the wallet.
  const kept = sources.filter(
    ({ asset }, index) => asked[index] === true && !(target.isOwn && isSame(asset, arriving)),
  );
  if (kept.length === 0) {
    throw notSupported(
      at,
      `expected an asset that is exchanged for \`${arriving.asset}\` on \`${arriving.chain.name}\``,
    );
  }
  return kept;
}

async function isExchanged(
  context: PlanContext,
  { asset: source, isExplicit, pointer }: Source,
  { arriving, target }: { readonly arriving: KnownAsset; readonly target: RouteTarget },
): Promise<boolean> {
  const rawAmount = await typicalAmount(context, source);
  const recipient = target.wallet.address;
  try {
    await estimateConversion(context, { source, destination: arriving, rawAmount, recipient });
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The pair can be exchanged, but not in this amount.
    if (error.code === 'invalid_data') return true;
    if (error.code !== 'not_supported') throw error;
    if (isExplicit) throw notSupported(pointer, error.message);
    return false;
  }
}

function shownAs({ asset, chain: chainText }: CryptoDepositAsset): CryptoDepositAsset {
  if (chainText === undefined) return { asset: asset.toLowerCase() };
  const chain = requireChainText(chainText, '');
  return { asset: requireAssetText(chain, asset, '').asset, chain: chain.name };
}

function specOf({ chain, tokenAddress }: KnownAsset): AutomationAssetSpec {
  return { asset_address: tokenAddress ?? NATIVE, caip2: chain.caip2 };
}

/** Returns each asset once, in a fixed order. */
function distinct(specs: readonly AutomationAssetSpec[]): AutomationAssetSpec[] {
  const byText = new Map(specs.map((spec) => [`${spec.caip2} ${spec.asset_address}`, spec]));
  return [...byText.keys()].sort().map((text) => byText.get(text)!);
}

/** Returns the key of a route, which is the same for every spelling of the route. */
export function routeKey({ filter, destination }: ResolvedRoute, isOwn: boolean): string {
  const values = filter.mode === 'all' ? [] : filter.values.map((each) => [each.caip2, each.asset_address]);
  const parts = [isOwn, filter.mode, values, destination.caip2, destination.asset_address];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Returns whether a deposit of some asset would match both filters. */
export function overlaps(left: AutomationAssetFilter, right: AutomationAssetFilter): boolean {
  if (left.mode === 'include') return left.values.some((each) => matchesFilter(right, each));
  if (right.mode === 'include') return right.values.some((each) => matchesFilter(left, each));
  // Each filter leaves out only a few assets, so some asset matches both.
  return true;
}

/**
 * Estimates the amount that a deposit to a deposit address delivers. Call it outside any database transaction.
 *
 * @throws ApiError invalid_data for an amount that cannot be exchanged; not_supported for unknown assets and chains,
 * chains without a paymaster, and pairs that cannot be exchanged; transaction_broadcast_failure when the chain or the
 * exchange cannot be reached.
 */
export async function planQuote(
  context: PlanContext,
  {
    source: from,
    destination: to,
    input_amount: amount,
    slippage_bps: slippageBps,
  }: QuoteCryptoDepositRequest,
): Promise<DepositAccountCryptoQuoteResponse> {
  const sourceChain = requireChainText(from.chain, '/source/chain');
  requireDepositChain(context, sourceChain, { payer: 'paymaster', pointer: '/source/chain' });
  const source = requireAssetText(sourceChain, from.asset, '/source/asset');
  const destinationChain = requireChainText(to.chain, '/destination/chain');
  const destination = requireAssetText(destinationChain, to.asset, '/destination/asset');
  if (isSame(source, destination)) {
    throw notSupported('/destination', "expected an asset or a chain other than the source's");
  }
  const rawAmount =
    amount === undefined
      ? await typicalAmount(context, source)
      : requireRaw(source, readDecimal(amount)!, '/input_amount');
  if (rawAmount === 0n) throw invalidField('/input_amount', 'expected an amount above 0');
  const rawOutput = await estimateConversion(context, { source, destination, rawAmount, slippageBps }).catch(
    (error: unknown) => {
      throw asInputAmount(error);
    },
  );
  return {
    input_amount: decimalText(fromRaw(rawAmount, source.decimals)),
    estimated_output_amount: decimalText(fromRaw(rawOutput, destination.decimals)),
    created_at: new Date(context.nowMs).toISOString(),
  };
}

/**
 * Returns the planned estimate.
 *
 * @throws what `planQuote` throws.
 */
export function quoteDeposit(
  planned: Planned<DepositAccountCryptoQuoteResponse>,
): DepositAccountCryptoQuoteResponse {
  return unwrapPlan(planned);
}

/** Renames the pointer of an error, because swaps have another name for the amount. */
function asInputAmount(error: unknown): unknown {
  const pointer = '/base_amount: ';
  if (!(error instanceof ApiError) || !error.message.startsWith(pointer)) return error;
  return invalidField('/input_amount', error.message.slice(pointer.length));
}
