import { PublicKey } from '@solana/web3.js';
import { Address } from 'ox';
import * as viemChains from 'viem/chains';
import * as viemTokens from 'viem/tokens';
import { expect, test } from 'vitest';
import { assetAtAddress, assetNamed, assetsOf, parseToken } from '../../../src/engine/assets/known-assets.ts';
import { chainNamed, chainOfCaip2, knownChains } from '../../../src/engine/assets/known-chains.ts';

const all = [...knownChains({ isTestnet: false }), ...knownChains({ isTestnet: true })];

test('every chain is found by its name and by its CAIP-2 id', () => {
  for (const chain of all) {
    expect(chainNamed(chain.name)).toBe(chain);
    expect(chainOfCaip2(chain.caip2)).toBe(chain);
  }
  expect(chainNamed('hypercore')).toBeUndefined();
  expect(chainOfCaip2('eip155:31337')).toBeUndefined();
});

// viem publishes chains and tokens as well, maintained independently from the same sources. An id may appear twice:
// an old test network also uses 999.
const publishedUnder = (caip2: string) =>
  Object.values(viemChains).filter((chain) => typeof chain === 'object' && `eip155:${chain.id}` === caip2);

test.each(all.filter(({ chainType }) => chainType === 'ethereum'))(
  '$name is the chain that viem publishes',
  (chain) => {
    const theirs = publishedUnder(chain.caip2).find(({ testnet }) => (testnet ?? false) === chain.isTestnet);
    expect(theirs).toBeDefined();
    // For Tempo viem lists a unit of amounts, which is not an asset.
    if (chain.native !== undefined) {
      expect(theirs?.nativeCurrency.symbol.replace(/^tBNB$/, 'BNB').toLowerCase()).toBe(chain.native.asset);
      expect(theirs?.nativeCurrency.decimals).toBe(chain.native.decimals);
    }
  },
);

test.each(['usdc', 'usdc.e', 'eurc', 'usdb', 'pathusd'])(
  '%s is at the addresses that viem publishes',
  (asset) => {
    const tokens = { ...viemTokens, 'usdc.e': viemTokens.usdce } as unknown as Record<
      string,
      typeof viemTokens.usdc
    >;
    const addresses = (tokens[asset]?.addresses ?? {}) as Readonly<Record<number, string>>;
    const compared = all.flatMap((chain) => {
      const known = assetNamed(chain, asset);
      const theirs = addresses[Number(chain.caip2.split(':')[1])];
      return known?.tokenAddress == null || theirs === undefined ? [] : [{ known, theirs }];
    });
    expect(compared.length).toBeGreaterThan(0);
    for (const { known, theirs } of compared) {
      expect(known.tokenAddress?.toLowerCase()).toBe(theirs.toLowerCase());
      expect(known.decimals).toBe(tokens[asset]?.decimals);
    }
  },
);

test('every token address is valid on its chain, with its checksum', () => {
  for (const { tokenAddress, chain } of all.flatMap(assetsOf)) {
    if (tokenAddress === null) continue;
    if (chain.chainType === 'ethereum')
      expect(tokenAddress).toBe(Address.checksum(tokenAddress as Address.Address));
    if (chain.chainType === 'solana') expect(new PublicKey(tokenAddress).toBase58()).toBe(tokenAddress);
  }
});

test('a token is found by its address in any letter case, and only on its own chain', () => {
  const base = chainNamed('base');
  const polygon = chainNamed('polygon');
  if (base === undefined || polygon === undefined) throw new Error('base and polygon are known');
  expect(assetAtAddress(base, '0x833589FCD6EDB6E08F4C7C32D4F71B54BDA02913')?.asset).toBe('usdc');
  expect(assetAtAddress(polygon, '0x833589FCD6EDB6E08F4C7C32D4F71B54BDA02913')).toBeUndefined();
});

test('an asset counts once if gas and token share one balance', () => {
  const arc = chainNamed('arc');
  expect(arc && assetsOf(arc).filter(({ asset }) => asset === 'usdc')).toMatchObject([{ decimals: 6 }]);
});

test('a token in a query is a chain name and an address', () => {
  expect(parseToken('base:0xabc')).toMatchObject({ chain: { name: 'base' }, tokenAddress: '0xabc' });
  expect(parseToken('nowhere:0xabc')).toBeUndefined();
  expect(parseToken('base')).toBeUndefined();
});

test('the chains are those that the contract names', async () => {
  const document = (await import('../../../openapi/openapi.json', { with: { type: 'json' } })).default;
  const named = document.components.schemas.WalletAssetChainNameInput['x-known-values'];
  expect(new Set([...all.map(({ name }) => name), 'hypercore'])).toEqual(new Set(named));
});
