import { defineEntity, p } from '@mikro-orm/core';

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
