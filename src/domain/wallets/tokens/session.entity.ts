import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A key pair that signs an app's access and identity tokens. Retired keys are kept for verification. */
export const AppSigningKeyEntity = defineEntity({
  name: 'AppSigningKey',
  tableName: 'app_signing_keys',
  properties: {
    /** The `kid` of the tokens. */
    id: p.text().primary(),
    appId: p.text(),
    /** Base64 SubjectPublicKeyInfo. */
    publicKey: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    createdAtMs: p.bigint('number'),
    /** When another key replaced this key; null for the current key. */
    retiredAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'app_signing_keys_by_app', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'app_signing_keys_by_master_key', properties: ['masterKeyId'] },
  ],
  uniques: [{ name: 'app_signing_keys_current', properties: ['appId'], where: 'retired_at_ms is null' }],
});

export type StoredSigningKey = InferEntity<typeof AppSigningKeyEntity>;

/** A device that a user has approved, with its session, which can be refreshed (RFC 8628). */
export const OauthGrantEntity = defineEntity({
  name: 'OauthGrant',
  tableName: 'oauth_grants',
  properties: {
    /** The `sid` of the access tokens. */
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    createdAtMs: p.bigint('number'),
    /** When tokens were last issued for the grant. */
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
    /** When the session was revoked because the user was frozen; null until then. */
    revokedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'user_sessions_by_user', properties: ['userId'] }],
});
