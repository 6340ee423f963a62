import { defineEntity, p } from '@mikro-orm/core';

/** An end user of an app. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    /** `did:service:` and a cuid. */
    id: p.text().primary(),
    appId: p.text(),
    /** JSON object; null when there is none. */
    customMetadata: p.text().strictNullable(),
    /** 0 or 1. */
    hasAcceptedTerms: p.integer().default(0),
    /** 0 or 1. */
    isGuest: p.integer().default(0),
    /** JSON array of `{type, verified_at}`, as answered. */
    mfaMethods: p.text().default('[]'),
    /** CHOICE: null, and then not answered, for everybody: the published API names no way to freeze a user. */
    frozenAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'users_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
});
