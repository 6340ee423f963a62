import { defineEntity, p } from '@mikro-orm/core';

/** Records which user can recover a wallet in addition to its primary signer. */
export const WalletRecoveryEntity = defineEntity({
  name: 'WalletRecovery',
  tableName: 'wallet_recoveries',
  properties: {
    walletId: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** When the recovery user first got a key that signs for the wallet; null before that. */
    recoveredAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'wallet_recoveries_waiting', properties: ['userId'], where: 'recovered_at_ms is null' }],
});
