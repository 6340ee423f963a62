import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** The membership of a wallet in an account. A wallet may be in several accounts. */
export const AccountWalletEntity = defineEntity({
  name: 'AccountWallet',
  tableName: 'account_wallets',
  properties: {
    accountId: p.text().primary(),
    walletId: p.text().primary(),
    /** Counts from 0, in the order in which the wallets were added. */
    position: p.integer(),
  },
});

/** One to five wallets of an app with one combined balance. */
export const AccountEntity = defineEntity({
  name: 'Account',
  tableName: 'accounts',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    displayName: p.text().strictNullable(),
    /** The name in lower case, which the `search` of the list reads; null without a name. */
    searchName: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'accounts_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
});

export type StoredAccount = InferEntity<typeof AccountEntity>;
