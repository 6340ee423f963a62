import { defineEntity, p } from '@mikro-orm/core';

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
