import type { CreateWalletRequest } from '../src/generated/schemas.ts';
import { carolKey } from './authorization-keys.ts';

/** A wallet without an owner: the app secret alone suffices to sign. Also addressable as `ext_wal_acme-ethereum`. */
export const acmeWallet = {
  chain_type: 'ethereum',
  external_id: 'acme-ethereum',
  display_name: 'Acme',
} satisfies CreateWalletRequest;

export const acmeSolanaWallet = {
  chain_type: 'solana',
  external_id: 'acme-solana',
  display_name: 'Acme on Solana',
} satisfies CreateWalletRequest;

/** Owned by Alice: requests need her signature. Her key quorum is added when the wallet is created. */
export const aliceWallet = {
  chain_type: 'ethereum',
  external_id: 'alice',
  display_name: 'Alice',
} satisfies CreateWalletRequest;

/** Owned by the treasury quorum, with the spending policy; their ids are added when the wallet is created. */
export const treasuryWallet = {
  chain_type: 'ethereum',
  external_id: 'treasury',
  display_name: 'Treasury',
} satisfies CreateWalletRequest;

/** A wallet that only a funded sandbox has, with the member of the seeds who owns it. */
interface FundedWallet {
  readonly owner: 'alice' | 'bob' | undefined;
  readonly body: CreateWalletRequest;
}

/** With the four wallets above, ten wallets have funds. */
export const fundedWallets: readonly FundedWallet[] = [
  { owner: 'bob', body: { chain_type: 'ethereum', external_id: 'bob', display_name: 'Bob' } },
  {
    owner: undefined,
    body: {
      chain_type: 'ethereum',
      external_id: 'carol',
      display_name: 'Carol',
      owner: { public_key: carolKey.publicKey },
    },
  },
  {
    owner: 'alice',
    body: { chain_type: 'solana', external_id: 'alice-solana', display_name: 'Alice on Solana' },
  },
  { owner: 'bob', body: { chain_type: 'solana', external_id: 'bob-solana', display_name: 'Bob on Solana' } },
  { owner: undefined, body: { chain_type: 'tron', external_id: 'acme-tron', display_name: 'Acme on Tron' } },
  { owner: 'alice', body: { chain_type: 'tron', external_id: 'alice-tron', display_name: 'Alice on Tron' } },
];

/** The names of the wallets in the seed data, in the order of the banner. */
export const seededNames = [
  ...[acmeWallet, aliceWallet, treasuryWallet, acmeSolanaWallet].map(({ external_id }) => external_id),
  ...fundedWallets.map(({ body }) => body.external_id ?? ''),
];

/**
 * The funds of one wallet, by its chain type: the amounts of assets, in units, on each chain.
 *
 * CHOICE: on Tron, a wallet gets USDT, because the contract names no USDC on Tron.
 */
export const funds: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>> = {
  ethereum: { base: { eth: 10, usdc: 10_000 }, ethereum: { eth: 10, usdc: 10_000 } },
  solana: { solana: { sol: 100, usdc: 10_000 } },
  tron: { tron: { trx: 10_000, usdt: 10_000 } },
};
