import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** An app's secret key for fingerprints. */
export const FingerprintKeyEntity = defineEntity({
  name: 'FingerprintKey',
  tableName: 'fingerprint_keys',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'fingerprint_keys_by_master_key', properties: ['masterKeyId'] }],
  uniques: [{ name: 'fingerprint_keys_app', properties: ['appId'] }],
});

export type StoredFingerprintKey = InferEntity<typeof FingerprintKeyEntity>;
