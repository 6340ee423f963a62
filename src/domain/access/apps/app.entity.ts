import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/sql-functions.ts';
import type { AppSecretHash } from './find-app.ts';

/** Settings of an app by name. The operations that read a setting define its meaning. */
export type AppSettings = { [name: string]: unknown };

/** A customer's app: the tenant that every other resource belongs to. */
export const AppEntity = defineEntity({
  name: 'App',
  tableName: 'apps',
  properties: {
    id: p.text().primary(),
    name: p.text(),
    /** Sorted by age, the newest secret first. */
    secretHashes: jsonText<AppSecretHash[]>(),
    settings: jsonText<AppSettings>().default('{}'),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'apps_by_age', properties: ['createdAtMs', 'id'] }],
});

export type App = InferEntity<typeof AppEntity>;
