import assert from 'node:assert/strict';
import { invalidField } from '../../../errors.ts';
import type { CustomMetadata, LinkedAccount, User, WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findUserForUpdate } from '../../access/user-records/find-user.ts';
import {
  type AccountWallet,
  type StoredAccount,
  type StoredUser,
  UserEntity,
} from '../../access/user-records/user.entity.ts';

/**
 * The CAIP-2 id of the main network of each chain type.
 *
 * CHOICE: `pearl` has no registered namespace, so its name is used. `spark` has no linked accounts.
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
 * Returns whether wallets of this chain type are listed among their user's accounts. The API has no schema for `spark`.
 */
export function isLinkable(chainType: string): boolean {
  return chainType in chainIds;
}

/** Converts a linked account to wire form, with times in Unix seconds. */
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

/** Converts a user to wire form, with times in Unix seconds. */
export function userView({ row, linkedAccounts }: StoredUser): User {
  return {
    id: row.id,
    created_at: Math.floor(row.created_at_ms / 1000),
    is_guest: row.is_guest === 1,
    has_accepted_terms: row.has_accepted_terms === 1,
    linked_accounts: linkedAccounts.map(linkedAccountView),
    mfa_methods: JSON.parse(row.mfa_methods),
    ...(row.custom_metadata === null ? {} : { custom_metadata: JSON.parse(row.custom_metadata) }),
    ...(row.frozen_at_ms === null ? {} : { frozen_at: Math.floor(row.frozen_at_ms / 1000) }),
  };
}

const MAX_BYTES = 1024;

/**
 * Replaces a user's metadata; an empty object clears it.
 *
 * @throws ApiError not_found; invalid_data for more than 1024 bytes of JSON.
 */
export async function replaceCustomMetadata(
  context: OperationContext,
  userId: string,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  return store(context, await findUserForUpdate(context, userId), metadata);
}

/**
 * Merges metadata into the existing metadata: given names get the new value, other names keep theirs.
 *
 * @throws ApiError not_found; invalid_data when the result has more than 1024 bytes of JSON.
 */
export async function mergeCustomMetadata(
  context: OperationContext,
  userId: string,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  const user = await findUserForUpdate(context, userId);
  const known: CustomMetadata = JSON.parse(user.row.custom_metadata ?? '{}');
  return store(context, user, { ...known, ...metadata });
}

/**
 * Converts metadata to its stored form: JSON, or null when it is empty.
 *
 * @throws ApiError invalid_data for more than 1024 bytes of JSON in UTF-8.
 */
export function encodeCustomMetadata(metadata: CustomMetadata | undefined): string | null {
  if (metadata === undefined || Object.keys(metadata).length === 0) return null;
  const text = JSON.stringify(metadata);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_BYTES) {
    throw invalidField('/custom_metadata', `must have at most ${MAX_BYTES} bytes of JSON, has ${bytes}`);
  }
  return text;
}

async function store(
  { em }: OperationContext,
  { row, linkedAccounts }: StoredUser,
  metadata: CustomMetadata,
): Promise<StoredUser> {
  const custom_metadata = encodeCustomMetadata(metadata);
  await em.nativeUpdate(UserEntity, { id: row.id }, { customMetadata: custom_metadata });
  return { row: { ...row, custom_metadata }, linkedAccounts };
}
