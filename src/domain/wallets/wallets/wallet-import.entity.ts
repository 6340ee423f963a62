import { defineEntity, p } from '@mikro-orm/core';

/** A started import: the private key for the caller's encrypted submission. */
export const WalletImportEntity = defineEntity({
  name: 'WalletImport',
  tableName: 'wallet_imports',
  properties: {
    /** Bound into the seal, like a wallet's id for its key. */
    id: p.text().primary(),
    appId: p.text(),
    chainType: p.text(),
    /** In the stored form of wallet addresses. */
    address: p.text(),
    /** 32-byte HPKE private key, sealed like a wallet's secret. */
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    expiresAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'wallet_imports_address', properties: ['appId', 'chainType', 'address'] }],
});
