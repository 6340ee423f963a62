const chainTitles: Readonly<Record<string, string>> = {
  arbitrum: 'Arbitrum One',
  optimism: 'OP Mainnet',
  bsc: 'BNB Smart Chain',
  zksync_era: 'ZKsync Era',
  worldchain: 'World Chain',
  megaeth: 'MegaETH',
  hyperevm: 'HyperEVM',
  optimism_sepolia: 'OP Sepolia',
  bsc_testnet: 'BNB Smart Chain Testnet',
};

const assetTitles: Readonly<Record<string, string>> = {
  eth: 'Ether',
  avax: 'Avalanche',
  pol: 'Polygon Ecosystem Token',
  bnb: 'BNB',
  hype: 'Hyperliquid',
  usdc: 'USD Coin',
  'usdc.e': 'Bridged USD Coin',
  usdt: 'Tether USD',
  eurc: 'Euro Coin',
};

/** The display name of a chain: its own, or the words of its name in the contract. */
export function chainTitle(name: string): string {
  const words = name.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return chainTitles[name] ?? words.join(' ');
}

export function assetTitle(asset: string): string {
  return assetTitles[asset] ?? asset.toUpperCase();
}

/**
 * An icon as a data URL: a disk with the first letter, in a color that depends on the name.
 *
 * CHOICE: the server links to no other host, so pages that show the list reveal their users to no other site.
 */
export function iconOf(name: string): string {
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 0);
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
    `<circle cx="16" cy="16" r="16" fill="hsl(${hue},60%,45%)"/>` +
    '<text x="16" y="22" font-family="sans-serif" font-size="16" text-anchor="middle" fill="#fff">' +
    `${name.charAt(0)}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
