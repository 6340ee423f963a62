import { defineEntity, p } from '@mikro-orm/core';

/** A refresh token of a grant. Used ones are kept for a while, so that their reuse is noticed. */
export const OauthRefreshTokenEntity = defineEntity({
  name: 'OauthRefreshToken',
  tableName: 'oauth_refresh_tokens',
  properties: {
    /** Hex SHA-256 of the token. */
    id: p.text().primary(),
    grantId: p.text(),
    createdAtMs: p.bigint('number'),
    /** Null for the live one. */
    usedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'oauth_refresh_tokens_by_grant', properties: ['grantId'] },
    { name: 'oauth_refresh_tokens_by_use', properties: ['usedAtMs'], where: 'used_at_ms is not null' },
  ],
  uniques: [
    // INVARIANT: at most one live refresh token for each grant.
    { name: 'oauth_refresh_tokens_live', properties: ['grantId'], where: 'used_at_ms is null' },
  ],
});
