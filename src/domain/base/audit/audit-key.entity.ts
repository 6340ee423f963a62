import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A key of the log: one signs its checkpoints, with the other requests are digested. */
export const AuditKeyEntity = defineEntity({
  name: 'AuditKey',
  tableName: 'audit_keys',
  properties: {
    id: p.text().primary().$type<'checkpoints' | 'digests'>(),
    /** Empty: the log is of the whole server. */
    appId: p.text(),
    /** The origin of the log, which is the name of the key that signs. */
    origin: p.text(),
    /** 32 bytes, base64; null for the key of digests. */
    publicKey: p.text().strictNullable(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'audit_keys_by_master_key', properties: ['masterKeyId'] }],
});

export type StoredAuditKey = InferEntity<typeof AuditKeyEntity>;
