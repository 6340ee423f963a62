import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** Somebody whom an app lets log in while its allowlist counts. */
export const AllowlistEntryEntity = defineEntity({
  name: 'AllowlistEntry',
  tableName: 'allowlist_entries',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** `email`, `phone`, `wallet` or `emailDomain`. */
    type: p.text(),
    /** In the form in which accounts are stored. */
    value: p.text(),
    /** When somebody whom the entry admits logged in first. */
    acceptedAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'allowlist_entries_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
  uniques: [{ name: 'allowlist_entries_value', properties: ['appId', 'type', 'value'] }],
});

export type StoredAllowlistEntry = InferEntity<typeof AllowlistEntryEntity>;
