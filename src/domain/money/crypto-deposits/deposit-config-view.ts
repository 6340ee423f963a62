import { assetsOf, type KnownAsset } from '../../../assets/known-assets.ts';
import type { KnownChain } from '../../../assets/known-chains.ts';
import type {
  CryptoDepositAccountChain,
  CryptoDepositAccountConfigResponse,
  CryptoDepositAccountConfigSearchResponse,
  CryptoDepositAccountSourceCurrency,
} from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { depositChains, ZERO_ADDRESS } from './deposit-chains.ts';
import { assetTitle, chainTitle, iconOf } from './display-names.ts';

/** The chains and currencies that dedicated addresses receive, in wire form. */
export function depositConfigView(
  context: Pick<PlanContext, 'chains' | 'exchange' | 'swapRoutes'>,
): CryptoDepositAccountConfigResponse {
  const chains = depositChains(context);
  const bySymbol = Map.groupBy(chains.flatMap(assetsOf), ({ asset }) => asset);
  return {
    chains: Object.fromEntries(chains.map((chain) => [chain.name, chainView(chain)])),
    currencies: [...bySymbol].map(([asset, places]) => currencyView(asset, places)),
  };
}

/**
 * The currencies whose name or symbol contains a text or whose token has it as its address, and their chains by
 * CAIP-2 id.
 *
 * CHOICE: only the currencies of the configuration are searched, so all of them are verified.
 */
export function depositConfigSearchView(
  context: Pick<PlanContext, 'chains' | 'exchange' | 'swapRoutes'>,
  text: string,
): CryptoDepositAccountConfigSearchResponse {
  const { chains, currencies } = depositConfigView(context);
  const wanted = text.trim().toLowerCase();
  const found = currencies.filter(
    ({ name, symbol, chains: places }) =>
      name.toLowerCase().includes(wanted) ||
      symbol.toLowerCase().includes(wanted) ||
      places.some(({ address }) => address.toLowerCase() === wanted),
  );
  const ids = new Set(found.flatMap(({ chains: places }) => places.map(({ caip2 }) => caip2)));
  const shown = Object.values(chains).filter(({ caip2 }) => ids.has(caip2));
  return {
    chains: Object.fromEntries(shown.map((chain) => [chain.caip2, chain])),
    currencies: found.map((currency) => ({ ...currency, verified: true })),
  };
}

function chainView({ name, caip2 }: KnownChain): CryptoDepositAccountChain {
  const title = chainTitle(name);
  return {
    caip2,
    chain_id: Number(caip2.slice('eip155:'.length)),
    display_name: title,
    icon_url: iconOf(title),
    vm_type: 'evm',
  };
}

function currencyView(asset: string, places: readonly KnownAsset[]): CryptoDepositAccountSourceCurrency {
  return {
    name: assetTitle(asset),
    symbol: asset.toUpperCase(),
    logo_uri: iconOf(asset.toUpperCase()),
    chains: places.map(({ chain, tokenAddress, decimals }) => ({
      ...{ caip2: chain.caip2, address: tokenAddress ?? ZERO_ADDRESS, decimals },
    })),
  };
}
