import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A key pair that signs an app's access and identity tokens. Retired keys are kept for verification. */
export const AppSigningKeyEntity = defineEntity({
  name: 'AppSigningKey',
  tableName: 'app_signing_keys',
  properties: {
    /** The `kid` of the tokens. */
    id: p.text().primary(),
    appId: p.text(),
    /** Base64 SubjectPublicKeyInfo. */
    publicKey: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    createdAtMs: p.bigint('number'),
    /** Null while the key signs. */
    retiredAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'app_signing_keys_by_app', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'app_signing_keys_by_master_key', properties: ['masterKeyId'] },
  ],
  uniques: [{ name: 'app_signing_keys_current', properties: ['appId'], where: 'retired_at_ms is null' }],
});

export type StoredSigningKey = InferEntity<typeof AppSigningKeyEntity>;
