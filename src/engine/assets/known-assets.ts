import { chainNamed, type KnownChain } from './known-chains.ts';

/** An asset on one chain: the native asset, or a token at an address. */
export interface KnownAsset {
  /** The name of the asset in the API, for example `usdc`. */
  readonly asset: string;
  readonly chain: KnownChain;
  /** The smart contract (EVM, TRON) or mint (Solana); null for the native asset. */
  readonly tokenAddress: string | null;
  readonly decimals: number;
}

type Tokens = Readonly<Record<string, string | { readonly address: string; readonly decimals: number }>>;

/** The decimals of a token, unless its entry states others. */
const STABLECOIN_DECIMALS = 6;

/**
 * The tokens that have a name in the API, by asset and chain, at the addresses that their issuers publish: USDC and
 * EURC by Circle, USDT by Tether or, on chains where Tether does not issue it, by that chain's canonical bridge.
 *
 * CHOICE: only verified addresses are listed. `usdb` and `ousd` outside Tempo, USDC where Circle does not issue it
 * (megaeth, robinhood, soneium, bsc's test network) and USDT on test networks have no entry. Requests can still name
 * them by address.
 */
const tokens: Readonly<Record<string, Tokens>> = {
  usdc: {
    ethereum: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    arbitrum: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    avalanche: '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E',
    base: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    linea: '0x176211869cA2b568f2A7D4EE941E073a821EE1ff',
    optimism: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
    polygon: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    // Bridged by Binance, not issued by Circle, hence 18 decimals.
    bsc: { address: '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d', decimals: 18 },
    zksync_era: '0x1d17CBcF0D6D143135aE902365D2E5e2A16538D4',
    unichain: '0x078D782b760474a361dDA0AF3839290b0EF57AD6',
    worldchain: '0x79A02482A880bCE3F13e09Da970dC34db4CD24d1',
    ink: '0x2D270e6886d130D724215A266106e6832161EAEd',
    hyperevm: '0xb88339CB7199b77E23DB6E890353E22632Ba630f',
    arc: '0x3600000000000000000000000000000000000000',
    solana: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    sepolia: '0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238',
    arbitrum_sepolia: '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d',
    avalanche_fuji: '0x5425890298aed601595a70AB815c96711a31Bc65',
    base_sepolia: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    linea_testnet: '0xFEce4462D57bD51A6A552365A011b95f0E16d9B7',
    optimism_sepolia: '0x5fd84259d66Cd46123540766Be93DFE6D43130D7',
    polygon_amoy: '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582',
    ink_sepolia: '0xFabab97dCE620294D2B0b0e46C68964e326300Ac',
    solana_devnet: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  },
  'usdc.e': {
    arbitrum: '0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8',
    avalanche: '0xA7D7079b0FEaD91F3e65f86E8915Cb59c1a4C664',
    optimism: '0x7F5c764cBc14f9669B88837ca1490cCa17c31607',
    polygon: '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174',
    zksync_era: '0x3355df6D4c9C3035724Fd0e3914dE96A5a83aaf4',
    tempo: '0x20C000000000000000000000b9537d11c60E8b50',
    tempo_testnet: '0x20C0000000000000000000009e8d7eB59B783726',
  },
  usdt: {
    ethereum: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
    arbitrum: '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9',
    avalanche: '0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7',
    optimism: '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58',
    polygon: '0xc2132D05D31c914a87C6611C10748AEb04B58e8F',
    bsc: { address: '0x55d398326f99059fF775485246999027B3197955', decimals: 18 },
    solana: 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB',
    tron: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  },
  eurc: {
    ethereum: '0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c',
    avalanche: '0xC891EB4cbdEFf6e073e859e987815Ed1505c2ACD',
    base: '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42',
    worldchain: '0x1C60ba0A0eD1019e8Eb035E6daF4155A5cE2380B',
    solana: 'HzwqbKZw8HxMN6bF2yFZNrht3c2iXXzpKcFmq7uBEDtr',
    sepolia: '0x08210F9170F89Ab7658F0B5E3fF39b0E03C594D4',
    avalanche_fuji: '0x5E44db7996c682E92a960b65AC713a54AD815c6B',
    base_sepolia: '0x808456652fdb597867f38412077A9182bf77359F',
  },
  usdb: {
    tempo: '0x20C0000000000000000000003158081EFd85bFc2',
  },
  pathusd: {
    tempo: '0x20C0000000000000000000000000000000000000',
    tempo_testnet: '0x20C0000000000000000000000000000000000000',
  },
};

const assetsByChain = new Map<string, readonly KnownAsset[]>();

/**
 * Returns the assets of a chain that have a name in the API: the native asset first, then the tokens.
 *
 * NOTE: on Arc, gas is paid in USDC, and `usdc` is the ERC-20 interface of the same balance. So only the token is
 * listed.
 */
export function assetsOf(chain: KnownChain): readonly KnownAsset[] {
  let assets = assetsByChain.get(chain.name);
  if (assets === undefined) {
    assets = listAssets(chain);
    assetsByChain.set(chain.name, assets);
  }
  return assets;
}

function listAssets(chain: KnownChain): KnownAsset[] {
  const named = Object.entries(tokens).flatMap(([asset, byChain]) => {
    const token = byChain[chain.name];
    if (token === undefined) return [];
    const { address, decimals } =
      typeof token === 'string' ? { address: token, decimals: STABLECOIN_DECIMALS } : token;
    return [{ asset, chain, tokenAddress: address, decimals }];
  });
  const { native } = chain;
  if (native === undefined || named.some(({ asset }) => asset === native.asset)) return named;
  return [{ ...native, chain, tokenAddress: null }, ...named];
}

/** Returns the asset with this name on a chain, or undefined if the chain does not have it. */
export function assetNamed(chain: KnownChain, asset: string): KnownAsset | undefined {
  return assetsOf(chain).find((known) => known.asset === asset);
}

/**
 * Returns the known asset with this token address, or undefined if there is none. EVM addresses match in any letter
 * case.
 */
export function assetAtAddress(chain: KnownChain, tokenAddress: string): KnownAsset | undefined {
  const wanted = comparable(chain, tokenAddress);
  return assetsOf(chain).find(
    (known) => known.tokenAddress !== null && comparable(chain, known.tokenAddress) === wanted,
  );
}

function comparable({ chainType }: KnownChain, tokenAddress: string): string {
  return chainType === 'ethereum' ? tokenAddress.toLowerCase() : tokenAddress;
}

/**
 * Parses `<chain name>:<address>`. Returns undefined without a colon or for an unknown chain. Does not check the
 * address.
 */
export function parseToken(text: string): { chain: KnownChain; tokenAddress: string } | undefined {
  const at = text.indexOf(':');
  const chain = chainNamed(text.slice(0, at));
  return at < 1 || chain === undefined ? undefined : { chain, tokenAddress: text.slice(at + 1) };
}
