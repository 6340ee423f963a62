import { readChainAddress } from '../../../engine/assets/addresses.ts';
import {
  type Decimal,
  decimalText,
  divide,
  fixedText,
  fromRaw,
  multiply,
  readDecimal,
  round,
  ZERO,
} from '../../../engine/assets/decimal.ts';
import { assetNamed, type KnownAsset, parseToken } from '../../../engine/assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidQuery } from '../../../errors.ts';
import type { WalletAssetBalance, WalletBalanceResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findToken, readChain, requireKnownChain } from '../../access/chains/chains.ts';
import { findWallet } from '../wallets/find-wallet.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';

type AskContext = Pick<OperationContext, 'chains'>;

/** A balance query for one address on one chain. */
export interface BalanceQuestion {
  readonly chain: KnownChain;
  readonly address: string;
  readonly assets: readonly KnownAsset[];
}

export interface Holding {
  readonly asset: KnownAsset;
  /** The balance in base units of the asset. */
  readonly rawAmount: bigint;
}

/**
 * The maximum number of concurrent balance queries of one request: enough to hide latency, few enough to spare the
 * nodes.
 */
const AT_ONCE = 8;

/**
 * Reads the balances of addresses, several concurrently.
 *
 * @returns the holdings in the order of the queries and their assets.
 * @throws ApiError not_supported for a chain that is not configured; unavailable when a chain cannot be reached,
 * because a partial balance would be wrong.
 */
export async function askBalances(
  context: AskContext,
  questions: readonly BalanceQuestion[],
): Promise<Holding[]> {
  const answers: Holding[][] = [];
  const open = questions.entries();
  const askOn = async (): Promise<void> => {
    for (const [index, question] of open) answers[index] = await askOne(context, question);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askOn));
  return answers.flat();
}

async function askOne(context: AskContext, { chain, address, assets }: BalanceQuestion): Promise<Holding[]> {
  const tokenAddresses = assets.map(({ tokenAddress }) => tokenAddress);
  const amounts = await readChain(requireKnownChain(context, chain).balances(address, tokenAddresses), chain);
  return assets.map((asset, index) => ({ asset, rawAmount: amounts[index] ?? 0n }));
}

// Symbols that are not simply the name in upper case.
const symbols: Readonly<Record<string, string>> = { 'usdc.e': 'USDC.e', pathusd: 'pathUSD' };

/** Returns the display symbol of a named asset: `USDC` for `usdc`. */
export function symbolOf(asset: string): string {
  return symbols[asset] ?? asset.toUpperCase();
}

/** The decimal places of displayed values, which are rounded half up to cents. */
const WORTH_PLACES = 2;

type Currency = 'usd' | 'eur';

/** Returns the price of one unit of an asset; undefined when it is unknown. */
export type PriceOf = (asset: KnownAsset) => Decimal | undefined;

/**
 * Returns a function that gives the price of an asset in a currency. Assets on test networks are worth nothing.
 *
 * CHOICE: one euro is worth one EURC, so that one price source gives prices in dollars and in euros.
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
/** The decimal places of prices in euros. With them, results are exact to the cent. */
const RATE_PLACES = 18;

export function worthOf(amount: Decimal, price: Decimal): Decimal {
  return multiply(amount, price);
}

/** Formats a value for display: `3102.40`, or `0` for zero. */
export function worthText(worth: Decimal): string {
  return worth.digits === 0n ? '0' : fixedText(round(worth, WORTH_PLACES));
}

/** Formats the price of one unit with at least two decimal places. */
export function priceText(price: Decimal): string {
  const places = decimalText(price).split('.')[1]?.length ?? 0;
  return price.digits === 0n ? '0' : fixedText(round(price, Math.max(places, WORTH_PLACES)));
}

interface BalanceQuery {
  readonly asset?: string | readonly string[] | undefined;
  readonly chain?: string | readonly string[] | undefined;
  /** One or more tokens, each as `<chain name>:<address>`. */
  readonly token?: string | readonly string[] | undefined;
  readonly include_currency?: Currency | undefined;
  readonly include_archived?: boolean | undefined;
}

/**
 * Reads a wallet's balances of the requested assets. They come in the order of `asset`, and of `chain` for each asset,
 * or in the order of `token`.
 *
 * CHOICE: if several assets and chains are requested, pairs that do not exist (such as POL on Base) are left out. An
 * asset that exists on none of the chains is refused, and so is a chain that is not configured.
 *
 * @throws ApiError not_found; invalid_data; not_supported for an unsupported chain or pair; unavailable when a chain
 * cannot be reached.
 */
export async function getWalletBalance(
  context: Pick<OperationContext, 'app' | 'em' | 'chains' | 'prices'>,
  walletId: string,
  query: BalanceQuery,
): Promise<WalletBalanceResponse> {
  const wallet = await findWallet(context, walletId, { includeArchived: query.include_archived });
  const assets = await askedAssets(context, wallet, query);
  const holdings = await askBalances(
    context,
    questionsOf(assets).map((question) => ({ ...question, address: wallet.address })),
  );
  const { include_currency: currency } = query;
  const worth = currency && { currency, priceOf: await pricesOf(context, assets, currency) };
  const found = new Map(holdings.map((holding) => [holding.asset, holding]));
  return { balances: assets.map((asset) => balanceView(found.get(asset) as Holding, worth)) };
}

/** Groups the assets into one query per chain, whatever the order of the requested assets. */
function questionsOf(assets: readonly KnownAsset[]): { chain: KnownChain; assets: KnownAsset[] }[] {
  return [...Map.groupBy(assets, ({ chain }) => chain)].map(([chain, own]) => ({ chain, assets: own }));
}

async function askedAssets(
  context: Pick<OperationContext, 'chains'>,
  wallet: WalletRow,
  { asset, chain, token }: BalanceQuery,
): Promise<KnownAsset[]> {
  if (token !== undefined) {
    if (asset !== undefined) throw invalidQuery('token', 'expected `token` or `asset`, not both');
    if (chain !== undefined)
      throw invalidQuery('chain', 'expected no `chain` with `token`, which contains the chain');
    return Promise.all(listOf(token).map((text) => tokenAsked(context, wallet, text)));
  }
  if (asset === undefined) throw invalidQuery('asset', 'expected `asset` with `chain`, or `token`');
  if (chain === undefined) throw invalidQuery('chain', 'expected together with `asset`');
  const chains = listOf(chain).map((name) => requireWalletChain(wallet, name));
  return listOf(asset).flatMap((name) => {
    const pairs = chains.flatMap((known) => assetNamed(known, name) ?? []);
    if (pairs.length > 0) return pairs;
    throw new ApiError(
      'not_supported',
      `asset: no \`${name}\` on ${chains.map((known) => `\`${known.name}\``).join(', ')}`,
    );
  });
}

async function tokenAsked(
  context: Pick<OperationContext, 'chains'>,
  wallet: WalletRow,
  text: string,
): Promise<KnownAsset> {
  const token = parseToken(text);
  if (token === undefined) {
    throw new ApiError('not_supported', `token: no chain of this name in \`${text}\``);
  }
  const chain = requireWalletChain(wallet, token.chain.name);
  const tokenAddress = readChainAddress(chain.chainType, token.tokenAddress);
  if (tokenAddress === undefined) {
    throw invalidQuery('token', `expected \`<chain>:<address>\`, got \`${text}\``);
  }
  return readChain(findToken(context, chain, tokenAddress), chain);
}

/**
 * Finds the chain with this name, on which the wallet must be usable.
 *
 * @throws ApiError not_supported for an unknown chain or a chain of another type. A custodial wallet supports only its
 * own chain.
 */
export function requireWalletChain(wallet: WalletRow, name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain === undefined) throw new ApiError('not_supported', `chain: \`${name}\` is not supported`);
  if (chain.chainType !== wallet.chain_type) {
    throw new ApiError('not_supported', `chain: \`${name}\` is not a chain of ${wallet.chain_type} wallets`);
  }
  if (wallet.custody_chain !== null && wallet.custody_chain !== name) {
    throw new ApiError(
      'not_supported',
      `chain: the custodian holds this wallet on \`${wallet.custody_chain}\``,
    );
  }
  return chain;
}

/** Returns the distinct values in order of first appearance. */
function listOf(value: string | readonly string[]): string[] {
  return [...new Set(typeof value === 'string' ? [value] : value)];
}

function balanceView(
  { asset, rawAmount }: Holding,
  worth: { currency: Currency; priceOf: PriceOf } | undefined,
): WalletAssetBalance {
  const amount = fromRaw(rawAmount, asset.decimals);
  const price = worth?.priceOf(asset);
  return {
    chain: asset.chain.name,
    asset: asset.asset,
    raw_value: rawAmount.toString(),
    raw_value_decimals: asset.decimals,
    display_values: {
      [asset.asset]: decimalText(amount),
      ...(worth === undefined || price === undefined
        ? {}
        : { [worth.currency]: worthText(worthOf(amount, price)) }),
    },
  };
}
