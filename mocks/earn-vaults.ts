/** A vault for USDC on Base, which the wallet `acme-ethereum` administers. It earns 5 % a year, of which the app gets a tenth. */
export const usdcVault = {
  id: 'qrvc27mg0z2zii6xo0k3z34h',
  provider: 'aave',
  name: 'USDC prime',
  chain: 'base',
  asset: 'usdc',
  address: '0x81bA25F06d0c7242D513A7472219a65c4646631D',
  apyBps: 500,
  feeBps: 1000,
} as const;
