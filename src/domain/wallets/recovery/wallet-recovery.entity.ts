import { defineEntity, p } from '@mikro-orm/core';

/** Who can recover a wallet besides its primary signer. */
export const WalletRecoveryEntity = defineEntity({
  name: 'WalletRecovery',
  tableName: 'wallet_recoveries',
  properties: {
    walletId: p.text().primary(),
    appId: p.text(),
    /** The recovery user. */
    userId: p.text(),
    /** When the recovery user first got a key that signs for the wallet; null while that has not happened. */
    recoveredAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'wallet_recoveries_waiting', properties: ['userId'], where: 'recovered_at_ms is null' }],
});
