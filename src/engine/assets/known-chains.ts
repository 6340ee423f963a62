import type { WalletChainType } from '../../generated/schemas.ts';

/** The asset in which a chain's gas is paid. Accounts hold it directly, not in a smart contract. */
interface NativeAsset {
  /** The name of the asset in the API, for example `eth`. */
  readonly asset: string;
  readonly decimals: number;
}

/** A chain that has a name in the API. */
export interface KnownChain {
  readonly name: string;
  readonly caip2: string;
  readonly chainType: WalletChainType;
  readonly isTestnet: boolean;
  /** Undefined on Tempo, where gas is paid in stablecoins and there is no native asset. */
  readonly native: NativeAsset | undefined;
}

const ETHER: NativeAsset = { asset: 'eth', decimals: 18 };

/**
 * The chains that have a name in the API and a CAIP-2 id.
 *
 * NOTE: `hypercore` does not accept transactions like the other chains, so it is not listed. Requests that name it
 * fail with not_supported.
 */
const chains: readonly KnownChain[] = [
  evm('ethereum', 1),
  evm('arbitrum', 42161),
  evm('avalanche', 43114, { asset: 'avax', decimals: 18 }),
  evm('base', 8453),
  evm('tempo', 4217, undefined),
  evm('linea', 59144),
  evm('optimism', 10),
  evm('polygon', 137, { asset: 'pol', decimals: 18 }),
  evm('bsc', 56, { asset: 'bnb', decimals: 18 }),
  evm('zksync_era', 324),
  evm('robinhood', 4663),
  evm('unichain', 130),
  evm('worldchain', 480),
  evm('ink', 57073),
  evm('soneium', 1868),
  evm('megaeth', 4326),
  evm('hyperevm', 999, { asset: 'hype', decimals: 18 }),
  // Gas is paid in USDC with 18 decimals. The ERC-20 interface shows the same balance with 6 decimals.
  evm('arc', 5042, { asset: 'usdc', decimals: 18 }),
  solana('solana', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'),
  tron('tron', '0x2b6653dc'),
  testnet(evm('tempo_testnet', 42431, undefined)),
  testnet(evm('hoodi', 560048)),
  testnet(evm('sepolia', 11155111)),
  testnet(evm('arbitrum_sepolia', 421614)),
  testnet(evm('avalanche_fuji', 43113, { asset: 'avax', decimals: 18 })),
  testnet(evm('base_sepolia', 84532)),
  testnet(evm('linea_testnet', 59141)),
  testnet(evm('optimism_sepolia', 11155420)),
  testnet(evm('polygon_amoy', 80002, { asset: 'pol', decimals: 18 })),
  testnet(evm('bsc_testnet', 97, { asset: 'bnb', decimals: 18 })),
  testnet(evm('robinhood_testnet', 46630)),
  testnet(evm('ink_sepolia', 763373)),
  testnet(solana('solana_devnet', 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1')),
  testnet(solana('solana_testnet', '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z')),
  testnet(tron('tron_nile', '0xcd8690dc')),
];

function evm(name: string, chainId: number, ...native: [] | [NativeAsset | undefined]): KnownChain {
  return {
    name,
    caip2: `eip155:${chainId}`,
    chainType: 'ethereum',
    isTestnet: false,
    native: native.length === 0 ? ETHER : native[0],
  };
}

function solana(name: string, reference: string): KnownChain {
  return {
    name,
    // The reference is a prefix of the genesis hash (CAIP-30).
    caip2: `solana:${reference}`,
    chainType: 'solana',
    isTestnet: false,
    native: { asset: 'sol', decimals: 9 },
  };
}

function tron(name: string, reference: string): KnownChain {
  return {
    name,
    caip2: `tron:${reference}`,
    chainType: 'tron',
    isTestnet: false,
    native: { asset: 'trx', decimals: 6 },
  };
}

function testnet(chain: KnownChain): KnownChain {
  return { ...chain, isTestnet: true };
}

const byName = new Map(chains.map((chain) => [chain.name, chain]));
const byCaip2 = new Map(chains.map((chain) => [chain.caip2, chain]));

/** Returns the chain with this name, for example `base`. */
export function chainNamed(name: string): KnownChain | undefined {
  return byName.get(name);
}

/** Returns the chain with this CAIP-2 id, for example `eip155:8453`. */
export function chainOfCaip2(caip2: string): KnownChain | undefined {
  return byCaip2.get(caip2);
}

/** Returns main networks or test networks, optionally of one chain type, in the order of the API document. */
export function knownChains(filter: {
  readonly isTestnet: boolean;
  readonly chainType?: string;
}): readonly KnownChain[] {
  return chains.filter(
    ({ isTestnet, chainType }) =>
      isTestnet === filter.isTestnet && (filter.chainType === undefined || chainType === filter.chainType),
  );
}
