import { defineEntity, p } from '@mikro-orm/core';

/**
 * What `src/storage/locks.ts` hashes names with: one row, which the migration draws on PostgreSQL. SQLite has none,
 * since it needs no locks.
 */
export const LockSecretEntity = defineEntity({
  name: 'LockSecret',
  tableName: 'lock_secrets',
  properties: {
    /** Always `names`. */
    id: p.text().primary(),
    secret: p.text(),
  },
});
