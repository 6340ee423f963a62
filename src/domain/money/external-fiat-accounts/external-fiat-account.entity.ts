import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A bank account of a user or an organization, registered with a provider. Its number is not stored. */
export const ExternalFiatAccountEntity = defineEntity({
  name: 'ExternalFiatAccount',
  tableName: 'external_fiat_accounts',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** `user` or `organization`. */
    entityType: p.text(),
    entityId: p.text(),
    provider: p.text(),
    environment: p.text(),
    providerAccountId: p.text(),
    /** The id that the provider had for the user or organization when the account was registered. */
    customerId: p.text(),
    /** `us`, `gb`, `iban`, `pix` or `swift`. */
    accountType: p.text(),
    currency: p.text(),
    accountOwnerName: p.text(),
    bankName: p.text().strictNullable(),
    lastFour: p.text().strictNullable(),
    /** The fingerprint of the account's identity, which recognizes the same account without storing its number. */
    fingerprint: p.text(),
    createdAtMs: p.bigint('number'),
    /**
     * When the account was removed; null until then. The row is kept, because payouts in progress still refer to it.
     */
    deletedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'external_fiat_accounts_by_age', properties: ['entityId', 'createdAtMs', 'id'] },
    { name: 'external_fiat_accounts_by_fingerprint', properties: ['entityId', 'fingerprint'] },
  ],
  uniques: [
    {
      name: 'external_fiat_accounts_live',
      properties: ['appId', 'entityId', 'provider', 'environment', 'fingerprint'],
      where: 'deleted_at_ms is null',
    },
  ],
});

export type StoredFiatAccount = InferEntity<typeof ExternalFiatAccountEntity>;
