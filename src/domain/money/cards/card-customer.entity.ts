import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** What a user has accepted to become a customer of the card issuer, in one of its environments. */
export const CardCustomerEntity = defineEntity({
  name: 'CardCustomer',
  tableName: 'card_customers',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    environment: p.text(),
    /** When the user accepted to get documents electronically. */
    disclosureAcceptedAtMs: p.bigint('number').strictNullable(),
    /** JSON array: ids of the bank's agreements that the user has accepted. */
    acceptedAgreements: p.text(),
    /** When the user accepted agreements last. */
    agreementsAcceptedAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'card_customers_by_user', properties: ['appId', 'userId', 'environment'] }],
});

export type StoredCardCustomer = InferEntity<typeof CardCustomerEntity>;
