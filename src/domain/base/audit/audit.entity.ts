import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** The log at one size. The newest row says how many records the log has. */
export const AuditCheckpointEntity = defineEntity({
  name: 'AuditCheckpoint',
  tableName: 'audit_checkpoints',
  properties: {
    size: p.bigint('number').primary().autoincrement(false),
    /** Base64. */
    root: p.text(),
    /** The signed note (C2SP tlog-checkpoint); null until it is signed, and for sizes that were passed by before. */
    note: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'audit_checkpoints_by_age', properties: ['createdAtMs'] }],
});

/** A key of the log: one signs its checkpoints, with the other requests are digested. */
export const AuditKeyEntity = defineEntity({
  name: 'AuditKey',
  tableName: 'audit_keys',
  properties: {
    id: p.text().primary().$type<'checkpoints' | 'digests'>(),
    /** Empty for the log of the whole server. */
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

/** A record with its place in the log. Rows are added by increasing index, without gaps, and never change. */
export const AuditRecordEntity = defineEntity({
  name: 'AuditRecord',
  tableName: 'audit_records',
  properties: {
    /** The index of the leaf, from 0. */
    leafIndex: p.bigint('number').primary().autoincrement(false),
    /** The row of `audit_pending` that it was. */
    pendingId: p.bigint('number'),
    /** The app that it was done to or for; null if it concerns none. */
    appId: p.text().strictNullable(),
    /** Where an operator's call came from; null for everything that operators did not do. */
    origin: p.text().strictNullable(),
    recordedAtMs: p.bigint('number'),
    /** The leaf: RFC 8785 JSON. */
    entry: p.text(),
  },
  indexes: [
    { name: 'audit_records_by_pending_id', properties: ['pendingId'] },
    {
      name: 'audit_records_of_operators',
      properties: ['appId', 'leafIndex'],
      where: 'origin is not null',
    },
  ],
});

/** A tile of the Merkle tree of the log (C2SP tlog-tiles), full or the partial one at the end of its level. */
export const AuditTileEntity = defineEntity({
  name: 'AuditTile',
  tableName: 'audit_tiles',
  properties: {
    level: p.integer().primary(),
    tileIndex: p.bigint('number').primary(),
    /** Up to 256 hashes of 32 bytes. */
    hashes: p.blob(),
  },
});

/** A record that was written in the transaction of what it records and has no place in the log yet. */
export const PendingRecordEntity = defineEntity({
  name: 'PendingAuditRecord',
  tableName: 'audit_pending',
  properties: {
    id: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    /** As in `audit_records`. */
    appId: p.text().strictNullable(),
    origin: p.text().strictNullable(),
    recordedAtMs: p.bigint('number'),
    entry: p.text(),
  },
});
