import { defineEntity, p } from '@mikro-orm/core';

/** A wallet's secret under envelope encryption, and the derivation of its key. */
export const WalletKeyEntity = defineEntity({
  name: 'WalletKey',
  tableName: 'wallet_keys',
  properties: {
    walletId: p.text().primary(),
    /** Encoded by `wallet-secret.ts`, sealed under the wallet's data key. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    /** `hd` or `private-key`. */
    entropyType: p.text(),
    /** BIP-32 or SLIP-10 path of an `hd` key. */
    derivationPath: p.text().strictNullable(),
    /** Index of the wallet among those from the same entropy. */
    walletIndex: p.integer().strictNullable(),
    /** JSON of the `WalletAuthority` under which the key is sealed; null for a key that is sealed without one. */
    authority: p.text().strictNullable(),
  },
  indexes: [{ name: 'wallet_keys_by_master_key', properties: ['masterKeyId'] }],
});
