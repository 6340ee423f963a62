import type { FiatAsset } from '../../ports/fiat-providers.ts';

/** The service's names of our chains: test networks have those of the main networks. */
const rails: Readonly<Record<string, string>> = {
  ethereum: 'ethereum',
  sepolia: 'ethereum',
  arbitrum: 'arbitrum',
  arbitrum_sepolia: 'arbitrum',
  avalanche: 'avalanche_c_chain',
  avalanche_fuji: 'avalanche_c_chain',
  base: 'base',
  base_sepolia: 'base',
  optimism: 'optimism',
  optimism_sepolia: 'optimism',
  polygon: 'polygon',
  polygon_amoy: 'polygon',
  solana: 'solana',
  solana_devnet: 'solana',
  tron: 'tron',
  tron_nile: 'tron',
};

/** The assets that the service has under the same names. */
const currencies: ReadonlySet<string> = new Set(['usdc', 'usdt', 'usdb', 'eurc', 'pyusd', 'dai']);

/** An asset on a chain in the service's words; undefined if it has neither. */
export function routeOf({ chain, asset }: Pick<FiatAsset, 'chain' | 'asset'>) {
  const rail = Object.hasOwn(rails, chain) ? rails[chain] : undefined;
  return rail === undefined || !currencies.has(asset) ? undefined : { payment_rail: rail, currency: asset };
}
