import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A bank account at a provider whose deposits are converted and sent to a wallet. */
export const FiatDepositAccountEntity = defineEntity({
  name: 'FiatDepositAccount',
  tableName: 'fiat_deposit_accounts',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    provider: p.text(),
    environment: p.text(),
    /** The id of the wallet's user or organization at the provider. */
    customerId: p.text(),
    /** The account's id at the provider. */
    virtualAccountId: p.text(),
    /** `activated` or `deactivated`. */
    status: p.text(),
    currency: p.text(),
    /** JSON array. */
    paymentRails: p.text(),
    asset: p.text(),
    /** The chain's name. */
    chain: p.text(),
    /** What the app keeps of each deposit, as the request has written it. */
    developerFeePercent: p.text().default('0'),
    createdAtMs: p.bigint('number'),
    /** When the provider is asked for the payment instructions next; null once they are stored. */
    nextCheckAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'fiat_deposit_accounts_by_age', properties: ['walletId', 'createdAtMs', 'id'] },
    {
      name: 'fiat_deposit_accounts_due',
      properties: ['nextCheckAtMs'],
      where: 'next_check_at_ms is not null',
    },
  ],
  uniques: [
    {
      name: 'fiat_deposit_accounts_activated',
      properties: ['walletId', 'provider', 'environment', 'currency', 'asset', 'chain'],
      where: "status = 'activated'",
    },
    {
      name: 'fiat_deposit_accounts_virtual',
      properties: ['provider', 'environment', 'virtualAccountId'],
    },
  ],
});

export type StoredDepositAccount = InferEntity<typeof FiatDepositAccountEntity>;
