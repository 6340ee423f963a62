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
    /** JSON array of the names of payment rails. */
    paymentRails: p.text(),
    asset: p.text(),
    /** The chain's name in the API. */
    chain: p.text(),
    /** The app's fee on each deposit, in the notation of the request. */
    developerFeePercent: p.text().default('0'),
    createdAtMs: p.bigint('number'),
    /**
     * When the provider is next polled for the payment instructions, or asked to close the account; null if neither is
     * needed.
     */
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

export type StoredFiatDepositAccount = InferEntity<typeof FiatDepositAccountEntity>;

/** The payment instructions of a fiat deposit account. They are sealed because they contain account numbers. */
export const FiatDepositInstructionsEntity = defineEntity({
  name: 'FiatDepositInstructions',
  tableName: 'fiat_deposit_instructions',
  properties: {
    /** The account's id. */
    id: p.text().primary(),
    appId: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'fiat_deposit_instructions_by_master_key', properties: ['masterKeyId'] }],
});

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
    /** `received`, `in_review`, `delivering`, `delivered`, `completed` or `failed`. The state only moves forward. */
    state: p.text(),
    /** The amount in units of the currency, in the provider's notation. */
    amount: p.text(),
    currency: p.text(),
    paymentRail: p.text().strictNullable(),
    senderName: p.text().strictNullable(),
    /** The hash of the provider's transfer to the wallet. */
    transactionHash: p.text().strictNullable(),
    /** The delivered amount in base units of the asset. */
    rawOutput: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When the chain is polled next for the transaction; null unless the deposit is `delivered`. */
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

/**
 * The position up to which the deposits of a provider have been read. The row is created with the first deposit account
 * at the provider.
 */
export const FiatPositionEntity = defineEntity({
  name: 'FiatPosition',
  tableName: 'fiat_positions',
  properties: {
    provider: p.text().primary(),
    environment: p.text().primary(),
    /** `FiatDepositPage.cursor` of the last page that was stored; empty before the first one. */
    position: p.text(),
  },
});
