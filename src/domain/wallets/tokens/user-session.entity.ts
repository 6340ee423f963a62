import { defineEntity, p } from '@mikro-orm/core';

/** One login of a user. */
export const UserSessionEntity = defineEntity({
  name: 'UserSession',
  tableName: 'user_sessions',
  properties: {
    /** The `sid` of the access tokens. */
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** Hex SHA-256 of the refresh token. */
    refreshTokenHash: p.text(),
    createdAtMs: p.bigint('number'),
    /** When the user was frozen. */
    revokedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'user_sessions_by_user', properties: ['userId'] }],
});
