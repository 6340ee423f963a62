import { defineEntity, p } from '@mikro-orm/core';

/** A wallet's secret under envelope encryption, and how the key came from it. */
export const WalletKeyEntity = defineEntity({
  name: 'WalletKey',
  tableName: 'wallet_keys',
  properties: {
    walletId: p.text().primary(),
    /** Laid out as `wallet-secret.ts` says, sealed under the wallet's data key. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    /** `hd` or `private-key`. */
    entropyType: p.text(),
    /** BIP-32 or SLIP-10 path of an `hd` key. */
    derivationPath: p.text().strictNullable(),
    /** Place of the wallet among those of one entropy. */
    walletIndex: p.integer().strictNullable(),
  },
  indexes: [{ name: 'wallet_keys_by_master_key', properties: ['masterKeyId'] }],
});
