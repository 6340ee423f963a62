import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A device that a user has approved: a session that is refreshed (RFC 8628). */
export const OauthGrantEntity = defineEntity({
  name: 'OauthGrant',
  tableName: 'oauth_grants',
  properties: {
    /** The `sid` of the access tokens. */
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    createdAtMs: p.bigint('number'),
    /** When tokens were last issued for it. */
    lastUsedAtMs: p.bigint('number'),
    revokedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'oauth_grants_by_app', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'oauth_grants_by_user', properties: ['userId', 'createdAtMs', 'id'] },
    { name: 'oauth_grants_by_use', properties: ['lastUsedAtMs'] },
  ],
});

export type OauthGrant = InferEntity<typeof OauthGrantEntity>;
