import type { CreateWalletRequest } from '../src/generated/schemas.ts';
import { aliceKey } from './authorization-keys.ts';

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

/** Owned by Alice: requests need her signature. */
export const aliceWallet = {
  chain_type: 'ethereum',
  external_id: 'alice',
  display_name: 'Alice',
  owner: { public_key: aliceKey.publicKey },
} satisfies CreateWalletRequest;

/** Owned by the treasury quorum, with the spending policy; their ids are added when the wallet is created. */
export const treasuryWallet = {
  chain_type: 'ethereum',
  external_id: 'treasury',
  display_name: 'Treasury',
} satisfies CreateWalletRequest;
