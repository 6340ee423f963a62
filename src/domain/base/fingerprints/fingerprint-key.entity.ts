import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** The sealed key with which an app's fingerprints are computed. See `fingerprint`. */
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
