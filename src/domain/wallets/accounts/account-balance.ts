import { add, type Decimal, decimalText, fromRaw, ZERO } from '../../../assets/decimal.ts';
import { assetsOf, type KnownAsset } from '../../../assets/known-assets.ts';
import { type KnownChain, knownChains } from '../../../assets/known-chains.ts';
import type { AccountBalanceResponse, BalanceAsset } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { askBalances, type BalanceQuestion, type Holding } from '../balances/ask-balances.ts';
import { symbolOf } from '../balances/symbols.ts';
import { type PriceOf, pricesOf, priceText, worthOf, worthText } from '../balances/worth.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { findAccount } from './find-account.ts';

/**
 * The combined balance of an account's wallets in US dollars, on main networks or on test networks.
 *
 * CHOICE: covers the named assets of every configured chain. Assets without a known price count as worth 0. Assets
 * with a zero balance are left out.
 *
 * @throws ApiError not_found; unavailable when a chain cannot be reached.
 */
export async function getAccountBalance(
  context: Pick<OperationContext, 'app' | 'em' | 'chains' | 'prices'>,
  accountId: string,
  { isTestnet }: { isTestnet: boolean },
): Promise<AccountBalanceResponse> {
  const { wallets } = await findAccount(context, accountId);
  const questions = knownChains({ isTestnet })
    .filter(({ caip2 }) => context.chains.find(caip2) !== undefined)
    .flatMap((chain) => questionsOn(chain, wallets));
  const held = (await askBalances(context, questions)).filter(({ rawAmount }) => rawAmount > 0n);
  const assets = held.map(({ asset }) => asset);
  const priceOf = await pricesOf(context, assets, 'usd');
  const worths = held.map((holding) => worthOf(amountOf(holding), priceOf(holding.asset) ?? ZERO));
  return {
    total: { value: worthText(worths.reduce(add, ZERO)), currency: 'usd' },
    assets: [...Map.groupBy(held, ({ asset }) => asset.asset).values()].map((same) => sum(same, priceOf)),
    assets_by_chain: [...Map.groupBy(held, ({ asset }) => asset).entries()].map(([{ chain }, same]) => ({
      ...sum(same, priceOf),
      chain_id: chain.caip2,
    })),
  };
}

/** Each address once: two wallets with the same imported key share one balance. */
function questionsOn(chain: KnownChain, wallets: readonly WalletRow[]): BalanceQuestion[] {
  const addresses = new Set(
    wallets
      .filter(({ chain_type }) => chain_type === chain.chainType)
      // A custodian credits only deposits on its own chain.
      .filter(({ custody_chain: custodyChain }) => custodyChain === null || custodyChain === chain.name)
      .map(({ address }) => address),
  );
  return [...addresses].map((address) => ({ chain, address, assets: assetsOf(chain) }));
}

function amountOf({ asset, rawAmount }: Holding): Decimal {
  return fromRaw(rawAmount, asset.decimals);
}

function sum(holdings: readonly Holding[], priceOf: PriceOf): BalanceAsset {
  // INVARIANT: a group has at least one member.
  const { asset } = holdings[0] as { asset: KnownAsset };
  return {
    symbol: symbolOf(asset.asset),
    amount: decimalText(holdings.map(amountOf).reduce(add, ZERO)),
    price: { value: priceText(priceOf(asset) ?? ZERO), currency: 'usd' },
  };
}
