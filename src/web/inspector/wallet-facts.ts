import type { WalletChainType } from '../../generated/schemas.ts';
import type { SandboxOwner, SandboxSigner } from '../../sandbox/generated/schemas.ts';
import { signers } from './api.ts';

/** The chain types on which a wallet can be created. */
export const chainTypes: readonly WalletChainType[] = [
  'ethereum',
  'solana',
  'tron',
  'bitcoin-segwit',
  'bitcoin-taproot',
  'cosmos',
  'stellar',
  'sui',
  'aptos',
  'movement',
  'ton',
  'starknet',
  'near',
  'spark',
  'xrpl',
  'pearl',
];

/** An asset that the faucet offers. */
export interface FaucetAsset {
  readonly chain: string;
  readonly asset: string;
}

const assets: Readonly<Record<string, readonly FaucetAsset[]>> = {
  ethereum: [
    { chain: 'ethereum', asset: 'eth' },
    { chain: 'ethereum', asset: 'usdc' },
    { chain: 'base', asset: 'eth' },
    { chain: 'base', asset: 'usdc' },
    { chain: 'polygon', asset: 'pol' },
    { chain: 'polygon', asset: 'usdc' },
  ],
  solana: [
    { chain: 'solana', asset: 'sol' },
    { chain: 'solana', asset: 'usdc' },
  ],
  tron: [
    { chain: 'tron', asset: 'trx' },
    { chain: 'tron', asset: 'usdt' },
  ],
};

/**
 * Returns the assets that the faucet offers to a wallet of this chain type. Returns an empty list if it offers none
 * by name.
 */
export function faucetAssets(chainType: string): readonly FaucetAsset[] {
  return Object.hasOwn(assets, chainType) ? assets[chainType]! : [];
}

/** Returns a wallet's balance queries, one per chain that the faucet supports. */
export function balanceQueries(chainType: string): { chain: string; asset: never[] }[] {
  const byChain = new Map<string, string[]>();
  for (const { chain, asset } of faucetAssets(chainType)) {
    byChain.set(chain, [...(byChain.get(chain) ?? []), asset]);
  }
  return [...byChain].map(([chain, names]) => ({ chain, asset: names as never[] }));
}

/** Returns an example request that signs with a wallet of this chain type: its operation and its body. */
export function signExample(chainType: string): { operation: string; body: object } {
  if (chainType === 'ethereum') {
    return {
      operation: 'walletRpc',
      body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
    };
  }
  if (chainType === 'solana') {
    return {
      operation: 'walletRpc',
      body: { method: 'signMessage', params: { message: 'SGVsbG8=', encoding: 'base64' } },
    };
  }
  return { operation: 'rawSignWallet', body: { params: { hash: `0x${'01'.repeat(32)}` } } };
}

/**
 * Returns the seeded keys that sign for an owner: as many of its members as must sign. Returns none for a wallet
 * without an owner, and for an owner whose members have no seeded key.
 */
export function ownerSigners(
  owner: Pick<SandboxOwner, 'members' | 'threshold'> | null | undefined,
): readonly SandboxSigner[] {
  if (owner === null || owner === undefined) return [];
  const names = owner.members
    .filter(({ type }) => type === 'public_key')
    .map(({ name }) => name?.toLowerCase());
  return signers.filter((signer) => names.includes(signer)).slice(0, owner.threshold);
}

/** The maximum number of pages that are read from one list. */
const MAX_PAGES = 100;

/** Reads all pages of a paginated list and returns their items. */
export async function allPages<Item>(
  read: (cursor: {
    readonly cursor?: string;
  }) => Promise<{ readonly data: readonly Item[]; readonly next_cursor?: string | null | undefined }>,
): Promise<Item[]> {
  const found: Item[] = [];
  let cursor: { readonly cursor?: string } = {};
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, next_cursor: next } = await read(cursor);
    found.push(...data);
    if (next === null || next === undefined) return found;
    cursor = { cursor: next };
  }
  return found;
}
