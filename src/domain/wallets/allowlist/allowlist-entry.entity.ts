import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** An identity or domain that may log in to an app while its allowlist is enabled. */
export const AllowlistEntryEntity = defineEntity({
  name: 'AllowlistEntry',
  tableName: 'allowlist_entries',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** `email`, `phone`, `wallet` or `emailDomain`. */
    type: p.text(),
    /** The value in the stored form of linked accounts, so that the two can be compared. */
    value: p.text(),
    /** When a user who matches the entry first logged in; null before that. */
    acceptedAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'allowlist_entries_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
  uniques: [{ name: 'allowlist_entries_value', properties: ['appId', 'type', 'value'] }],
});

export type StoredAllowlistEntry = InferEntity<typeof AllowlistEntryEntity>;
