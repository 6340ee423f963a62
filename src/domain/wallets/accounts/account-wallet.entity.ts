import { defineEntity, p } from '@mikro-orm/core';

/** The membership of a wallet in an account; a wallet may be in several. */
export const AccountWalletEntity = defineEntity({
  name: 'AccountWallet',
  tableName: 'account_wallets',
  properties: {
    accountId: p.text().primary(),
    walletId: p.text().primary(),
    /** From 0, in the order they were added. */
    position: p.integer(),
  },
});
