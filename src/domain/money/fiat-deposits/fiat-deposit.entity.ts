import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A deposit that a provider has received for a fiat deposit account. */
export const FiatDepositEntity = defineEntity({
  name: 'FiatDeposit',
  tableName: 'fiat_deposits',
  properties: {
    id: p.text().primary(),
    accountId: p.text(),
    provider: p.text(),
    environment: p.text(),
    providerDepositId: p.text(),
    /** `received`, `in_review`, `delivering`, `delivered`, `completed` or `failed`. Only ever moves forward. */
    state: p.text(),
    /** In units of the currency, as the provider writes it. */
    amount: p.text(),
    currency: p.text(),
    paymentRail: p.text().strictNullable(),
    senderName: p.text().strictNullable(),
    /** Of the provider's transfer to the wallet. */
    transactionHash: p.text().strictNullable(),
    /** In base units of the delivered asset. */
    rawOutput: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When the chain is asked for the transaction next; null unless the deposit is `delivered`. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'fiat_deposits_due', properties: ['nextCheckAtMs'], where: 'next_check_at_ms is not null' },
    {
      name: 'fiat_deposits_by_transaction',
      properties: ['transactionHash'],
      where: 'transaction_hash is not null',
    },
  ],
  uniques: [{ name: 'fiat_deposits_provider', properties: ['provider', 'environment', 'providerDepositId'] }],
});

export type StoredDeposit = InferEntity<typeof FiatDepositEntity>;
