import { assetsOf, type KnownAsset } from '../../../assets/known-assets.ts';
import type { KnownChain } from '../../../assets/known-chains.ts';
import type {
  CryptoDepositAccountChain,
  CryptoDepositAccountConfigResponse,
  CryptoDepositAccountSourceCurrency,
} from '../../../generated/schemas.ts';
import type { PreparationContext } from '../../../operation-context.ts';
import { depositChains, ZERO_ADDRESS } from './deposit-chains.ts';
import { assetTitle, chainTitle, iconOf } from './display-names.ts';

/** The chains and currencies that dedicated addresses receive, in wire form. */
export function depositConfigView(
  context: Pick<PreparationContext, 'chains' | 'exchange' | 'swapRoutes'>,
): CryptoDepositAccountConfigResponse {
  const chains = depositChains(context);
  const bySymbol = Map.groupBy(chains.flatMap(assetsOf), ({ asset }) => asset);
  return {
    chains: Object.fromEntries(chains.map((chain) => [chain.name, chainView(chain)])),
    currencies: [...bySymbol].map(([asset, places]) => currencyView(asset, places)),
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
