import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable, SqlBool } from 'kysely';
import type { WalletAdditionalSigner } from '../../../generated/schemas.ts';
import type { AdditionalSigner } from '../../access/owners/require-authorization.ts';
import type { Tables } from '../../tables.ts';

/**
 * A known value sealed under a master key, so that a wrong key is detected at start instead of at the first
 * signature.
 */
export const MasterKeyCheckEntity = defineEntity({
  name: 'MasterKeyCheck',
  tableName: 'master_key_checks',
  properties: {
    masterKeyId: p.text().primary(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
  },
});

/** A started import: the private key that decrypts the caller's submission. */
export const WalletImportEntity = defineEntity({
  name: 'WalletImport',
  tableName: 'wallet_imports',
  properties: {
    /** The seal is bound to this id, as the seal of a wallet's key is to the wallet's id. */
    id: p.text().primary(),
    appId: p.text(),
    chainType: p.text(),
    /** The address of the key to import, in the stored form of wallet addresses. */
    address: p.text(),
    /** 32-byte HPKE private key, sealed like a wallet's secret. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    expiresAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'wallet_imports_address', properties: ['appId', 'chainType', 'address'] }],
});

/** The sealed secret of a wallet, and the derivation of its key from it. */
export const WalletKeyEntity = defineEntity({
  name: 'WalletKey',
  tableName: 'wallet_keys',
  properties: {
    walletId: p.text().primary(),
    /** The secret as `encodeWalletSecret` encodes it, sealed under the wallet's data key. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    /** `hd` or `private-key`. */
    entropyType: p.text(),
    /** BIP-32 or SLIP-10 path of an `hd` key. */
    derivationPath: p.text().strictNullable(),
    /** The number of the wallet among the wallets that are derived from the same secret. */
    walletIndex: p.integer().strictNullable(),
    /** JSON of the `WalletAuthority` under which the key is sealed; null if it is sealed without one. */
    authority: p.text().strictNullable(),
  },
  indexes: [{ name: 'wallet_keys_by_master_key', properties: ['masterKeyId'] }],
});

/** An additional signer of a wallet, in a row that is indexed by key quorum and by policy. */
export const WalletSignerEntity = defineEntity({
  name: 'WalletSigner',
  tableName: 'wallet_signers',
  properties: {
    walletId: p.text().primary(),
    /** Position in the wallet's `additional_signers`. */
    position: p.integer().primary(),
    /** The key quorum that may sign. */
    signerId: p.text(),
    overridePolicyId: p.text().strictNullable(),
  },
  indexes: [
    { name: 'wallet_signers_by_signer', properties: ['signerId'] },
    {
      name: 'wallet_signers_by_policy',
      properties: ['overridePolicyId'],
      where: 'override_policy_id is not null',
    },
  ],
});

/** A wallet of an app. Its secret is in `wallet_keys`. */
export const WalletEntity = defineEntity({
  name: 'Wallet',
  tableName: 'wallets',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    chainType: p.text(),
    /**
     * The address in the chain's canonical form: EIP-55 on ethereum, lower-case hex on the Move chains and starknet.
     */
    address: p.text(),
    /** The public key as the API shows it; null for chains on which the API shows no public key. */
    publicKey: p.text().strictNullable(),
    displayName: p.text().strictNullable(),
    externalId: p.text().strictNullable(),
    /** The key quorum that owns the wallet; null without an owner. */
    ownerId: p.text().strictNullable(),
    /** The wallet's policy. The API shows it as the only element of `policy_ids`. */
    policyId: p.text().strictNullable(),
    /** JSON array of `{signer_id, override_policy_ids?}` in wire form. `wallet_signers` indexes it. */
    additionalSigners: p.text().default('[]'),
    /** `user` or `organization`; null before the wallet is assigned. */
    entityType: p.text().strictNullable(),
    entityId: p.text().strictNullable(),
    entityAssignmentId: p.text().strictNullable(),
    entityAssignedAtMs: p.bigint('number').strictNullable(),
    custodyProvider: p.text().strictNullable(),
    custodyProviderUserId: p.text().strictNullable(),
    custodyChain: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    exportedAtMs: p.bigint('number').strictNullable(),
    importedAtMs: p.bigint('number').strictNullable(),
    archivedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'wallets_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    {
      name: 'wallets_by_age_live',
      properties: ['appId', 'createdAtMs', 'id'],
      where: 'archived_at_ms is null',
    },
    { name: 'wallets_by_chain_type', properties: ['appId', 'chainType', 'createdAtMs', 'id'] },
    {
      name: 'wallets_by_owner',
      properties: ['ownerId', 'createdAtMs', 'id'],
      where: 'owner_id is not null',
    },
    {
      name: 'wallets_by_entity',
      properties: ['entityId', 'createdAtMs', 'id'],
      where: 'entity_id is not null',
    },
    // The address comes first, because addresses that chains report are looked up across all apps.
    { name: 'wallets_by_address', properties: ['address', 'appId'] },
    // Solana nodes have no list of all transfers, so the addresses there are polled one after the other.
    {
      name: 'wallets_on_solana',
      properties: ['address'],
      where: "chain_type = 'solana' and archived_at_ms is null",
    },
    { name: 'wallets_by_policy', properties: ['policyId'], where: 'policy_id is not null' },
  ],
  uniques: [
    {
      name: 'wallets_external_id',
      properties: ['appId', 'externalId'],
      where: 'external_id is not null',
    },
  ],
});

/** A row of `wallets` with the column names of the database. */
export type WalletRow = Selectable<Tables['wallets']>;

/** Returns the wallet's additional signers in the form that `requireAuthorization` expects. */
export function signersOf(wallet: Pick<WalletRow, 'additional_signers'>): AdditionalSigner[] {
  const signers = JSON.parse(wallet.additional_signers) as WalletAdditionalSigner;
  return signers.map(({ signer_id: signerId, override_policy_ids: overridePolicyIds }) =>
    overridePolicyIds === undefined ? { signerId } : { signerId, overridePolicyIds },
  );
}

/** A wallet that was read for use, with data from other tables that most uses need. */
export interface FoundWallet extends WalletRow {
  /** The digest of the rules of the wallet's policy; null if the wallet has no policy. */
  readonly policy_rules_digest: string | null;
  /** Whether an automation is attached to the wallet. SQLite returns 0 or 1. */
  readonly has_automations: SqlBool;
}

/**
 * Every column of `wallets`, for reads of whole rows.
 *
 * NOTE: a prepared `select *` would break when a migration adds a column under a running server.
 */
export const walletColumns = [
  'id',
  'app_id',
  'chain_type',
  'address',
  'public_key',
  'display_name',
  'external_id',
  'owner_id',
  'policy_id',
  'additional_signers',
  'entity_type',
  'entity_id',
  'entity_assignment_id',
  'entity_assigned_at_ms',
  'custody_provider',
  'custody_provider_user_id',
  'custody_chain',
  'created_at_ms',
  'exported_at_ms',
  'imported_at_ms',
  'archived_at_ms',
] as const satisfies readonly (keyof WalletRow)[];
