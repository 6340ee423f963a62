import { defineEntity, p } from '@mikro-orm/core';

/** A customer's app: the tenant that every other resource belongs to. */
export const AppEntity = defineEntity({
  name: 'App',
  tableName: 'apps',
  properties: {
    id: p.text().primary(),
    name: p.text(),
    /** JSON array of `AppSecretHash`, newest first. */
    secretHashes: p.text(),
    /** JSON object. */
    settings: p.text().default('{}'),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'apps_by_age', properties: ['createdAtMs', 'id'] }],
});
