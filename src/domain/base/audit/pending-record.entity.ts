import { defineEntity, p } from '@mikro-orm/core';

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
