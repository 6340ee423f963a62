import assert from 'node:assert/strict';
import type { LinkedAccount, WalletChainType } from '../../../generated/schemas.ts';
import type { AccountWallet, StoredAccount } from '../../access/user-records/user-row.ts';

/**
 * The main network of each chain type, as CAIP-2. CHOICE: `pearl` has no registered namespace, so its name is used;
 * `spark` has no linked accounts.
 */
const chainIds: Readonly<Record<Exclude<WalletChainType, 'spark'>, string>> = {
  ethereum: 'eip155:1',
  solana: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  cosmos: 'cosmos:cosmoshub-4',
  stellar: 'stellar:pubnet',
  sui: 'sui:mainnet',
  aptos: 'aptos:1',
  movement: 'movement:126',
  tron: 'tron:0x2b6653dc',
  'bitcoin-segwit': 'bip122:000000000019d6689c085ae165831e93',
  'bitcoin-taproot': 'bip122:000000000019d6689c085ae165831e93',
  pearl: 'pearl:mainnet',
  near: 'near:mainnet',
  ton: 'ton:-239',
  starknet: 'starknet:SN_MAIN',
  xrpl: 'xrpl:0',
};

/**
 * Whether wallets of this chain type are listed among their user's accounts; the contract has no schema for `spark`.
 */
export function isLinkable(chainType: string): boolean {
  return chainType in chainIds;
}

/** A linked account in wire form. Times: Unix seconds. */
export function linkedAccountView(account: StoredAccount): LinkedAccount {
  const details = JSON.parse(account.details);
  return {
    type: account.type,
    ...(account.wallet === null ? details : embeddedWallet(account, account.wallet, details.wallet_index)),
    verified_at: toSeconds(account.verified_at_ms),
    first_verified_at: toSeconds(account.first_verified_at_ms),
    latest_verified_at: toSeconds(account.latest_verified_at_ms),
  } as LinkedAccount;
}

function embeddedWallet(account: StoredAccount, wallet: AccountWallet, walletIndex: number) {
  const chainType = wallet.chain_type as WalletChainType;
  assert(chainType !== 'spark', 'spark wallets are never linked accounts');
  return {
    id: account.wallet_id,
    address: wallet.address,
    // A Solana address is its public key.
    ...(chainType === 'ethereum' ? {} : { public_key: wallet.public_key ?? wallet.address }),
    chain_type: chainType,
    chain_id: chainIds[chainType],
    wallet_index: walletIndex,
    wallet_client: 'service',
    wallet_client_type: 'service',
    connector_type: 'embedded',
    recovery_method: 'service-v2',
    imported: wallet.imported_at_ms !== null,
    // CHOICE: `delegated` is true when the wallet has additional signers.
    delegated: wallet.additional_signers !== '[]',
  };
}

function toSeconds(timeMs: number | null): number | null {
  return timeMs === null ? null : Math.floor(timeMs / 1000);
}
