import { defineEntity, p } from '@mikro-orm/core';

/** A begun import: the private half of the key that the caller seals its secret to. */
export const WalletImportEntity = defineEntity({
  name: 'WalletImport',
  tableName: 'wallet_imports',
  properties: {
    /** Binds the sealed key, as a wallet's id binds its own. */
    id: p.text().primary(),
    appId: p.text(),
    chainType: p.text(),
    /** As it is stored for wallets. */
    address: p.text(),
    /** 32-byte HPKE private key, sealed like a wallet's secret. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    expiresAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'wallet_imports_address', properties: ['appId', 'chainType', 'address'] }],
});
