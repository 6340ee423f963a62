import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** The terms that a user accepted to become a customer of the card issuer, in one of its environments. */
export const CardCustomerEntity = defineEntity({
  name: 'CardCustomer',
  tableName: 'card_customers',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    environment: p.text(),
    /** When the user agreed to receive documents electronically; null until then. */
    disclosureAcceptedAtMs: p.bigint('number').strictNullable(),
    /** JSON array with the ids of the bank's agreements that the user accepted. */
    acceptedAgreements: p.text(),
    /** When the user last accepted agreements; null before the first time. */
    agreementsAcceptedAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'card_customers_by_user', properties: ['appId', 'userId', 'environment'] }],
});

export type StoredCardCustomer = InferEntity<typeof CardCustomerEntity>;

/**
 * A card of a user that spends from a wallet.
 *
 * INVARIANT: no card number, security code or PIN is stored.
 */
export const CardEntity = defineEntity({
  name: 'Card',
  tableName: 'cards',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    environment: p.text(),
    walletId: p.text(),
    caip2: p.text(),
    asset: p.text(),
    issuerCardId: p.text(),
    /** `active`, `inactive` or `canceled`. */
    status: p.text(),
    /** The `IssuedCard.revision` with which the issuer reported the status. */
    revision: p.integer(),
    brand: p.text(),
    last4: p.text(),
    expMonth: p.integer(),
    expYear: p.integer(),
    /** `lost` or `stolen` if the user reported it; null otherwise. */
    cancellationReason: p.text().strictNullable(),
    replacedById: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When the status is next reported to the issuer, Unix ms. Null while the issuer has the current status. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'cards_by_age', properties: ['appId', 'userId', 'environment', 'createdAtMs', 'id'] },
    { name: 'cards_by_user', properties: ['userId'] },
    { name: 'cards_by_wallet', properties: ['walletId'] },
    { name: 'cards_due', properties: ['nextCheckAtMs'], where: 'next_check_at_ms is not null' },
  ],
  uniques: [{ name: 'cards_by_issuer', properties: ['environment', 'issuerCardId'] }],
});

export type StoredCard = InferEntity<typeof CardEntity>;
