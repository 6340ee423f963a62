import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * A checkpoint: the size and the root of the log after one run of the sequencer. The newest row has the current size.
 */
export const AuditCheckpointEntity = defineEntity({
  name: 'AuditCheckpoint',
  tableName: 'audit_checkpoints',
  properties: {
    size: p.bigint('number').primary().autoincrement(false),
    /** The hash at the root of the Merkle tree, base64. */
    root: p.text(),
    /**
     * The signed note (C2SP tlog-checkpoint). Null until the checkpoint is signed. If a newer checkpoint is stored
     * first, it stays null.
     */
    note: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'audit_checkpoints_by_age', properties: ['createdAtMs'] }],
});

/** A key of the log. One key signs checkpoints, another makes digests of requests. */
export const AuditKeyEntity = defineEntity({
  name: 'AuditKey',
  tableName: 'audit_keys',
  properties: {
    id: p.text().primary().$type<'checkpoints' | 'digests'>(),
    /** Empty, because all apps share the log of the server. */
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

/** A record with its place in the log. Rows are added with increasing indexes, without gaps, and never change. */
export const AuditRecordEntity = defineEntity({
  name: 'AuditRecord',
  tableName: 'audit_records',
  properties: {
    /** The index of the leaf, counting from 0. */
    leafIndex: p.bigint('number').primary().autoincrement(false),
    /** The id that the record had in `audit_pending`. */
    pendingId: p.bigint('number'),
    /** The app that the recorded action concerns; null if it concerns no app. */
    appId: p.text().strictNullable(),
    /** Where an operator's call came from; null for all other actions. */
    origin: p.text().strictNullable(),
    recordedAtMs: p.bigint('number'),
    /** The leaf as RFC 8785 JSON. */
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

/** A tile of the log's Merkle tree (C2SP tlog-tiles). The last tile of a level may be partial; all others are full. */
export const AuditTileEntity = defineEntity({
  name: 'AuditTile',
  tableName: 'audit_tiles',
  properties: {
    level: p.integer().primary(),
    tileIndex: p.bigint('number').primary(),
    /** Up to 256 hashes of 32 bytes each, concatenated. */
    hashes: p.blob(),
  },
});

/** A record that has no place in the log yet. It was written in the transaction of the change that it describes. */
export const PendingRecordEntity = defineEntity({
  name: 'PendingAuditRecord',
  tableName: 'audit_pending',
  properties: {
    id: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    /** This and the following columns are described in `AuditRecordEntity`. */
    appId: p.text().strictNullable(),
    origin: p.text().strictNullable(),
    recordedAtMs: p.bigint('number'),
    entry: p.text(),
  },
});
