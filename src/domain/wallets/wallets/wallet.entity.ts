import { defineEntity, p } from '@mikro-orm/core';

/** A wallet of an app. Its secret is in `wallet_keys`. */
export const WalletEntity = defineEntity({
  name: 'Wallet',
  tableName: 'wallets',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    chainType: p.text(),
    /** In the chain's canonical form: EIP-55 on ethereum, lower-case hex on the Move chains and starknet. */
    address: p.text(),
    /** Hex without `0x`; only on chains whose addresses do not encode the key. */
    publicKey: p.text().strictNullable(),
    displayName: p.text().strictNullable(),
    externalId: p.text().strictNullable(),
    /** The key quorum that owns the wallet. */
    ownerId: p.text().strictNullable(),
    /** The contract allows one policy at most; `policy_ids` on the wire. */
    policyId: p.text().strictNullable(),
    /** JSON array of `{signer_id, override_policy_ids?}` in wire form. Indexed in `wallet_signers`. */
    additionalSigners: p.text().default('[]'),
    /** `user` or `organization`. */
    entityType: p.text().strictNullable(),
    entityId: p.text().strictNullable(),
    entityAssignmentId: p.text().strictNullable(),
    entityAssignedAtMs: p.bigint('number').strictNullable(),
    custodyProvider: p.text().strictNullable(),
    custodyProviderUserId: p.text().strictNullable(),
    /** The chain name of a custodial wallet. */
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
    // The address first, because chain reports are looked up across all apps.
    { name: 'wallets_by_address', properties: ['address', 'appId'] },
    // Solana has no list of all transfers: its addresses are asked one after the other.
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
