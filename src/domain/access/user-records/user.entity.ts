import { defineEntity, p } from '@mikro-orm/core';

/** An end user of an app. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    /** `did:service:` and a cuid. */
    id: p.text().primary(),
    appId: p.text(),
    /** JSON object; null when empty. */
    customMetadata: p.text().strictNullable(),
    /** 0 or 1. */
    hasAcceptedTerms: p.integer().default(0),
    /** 0 or 1. */
    isGuest: p.integer().default(0),
    /** JSON array of `{type, verified_at}` in wire form. */
    mfaMethods: p.text().default('[]'),
    /**
     * CHOICE: null, and then omitted from responses, for all users: the published API has no operation that freezes a
     * user.
     */
    frozenAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'users_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
});
