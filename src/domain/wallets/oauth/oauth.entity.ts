import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** The stored statuses. `expired` is not stored, because it is derived from the time. */
type DeviceCodeStatus = 'pending' | 'approved' | 'denied' | 'redeemed';

/** A device code (RFC 8628). Its device is waiting for the user's decision, or the user has decided. */
export const OauthDeviceCodeEntity = defineEntity({
  name: 'OauthDeviceCode',
  tableName: 'oauth_device_codes',
  properties: {
    /** Hex SHA-256 of the device code. */
    id: p.text().primary(),
    appId: p.text(),
    /** The user code in upper case, without the hyphen. */
    userCode: p.text(),
    status: p.text().$type<DeviceCodeStatus>(),
    /** The network of a client without a secret: an IPv4 address or an IPv6 /64; null for clients with a secret. */
    publicNetwork: p.text().strictNullable(),
    /** The user who approved or denied the device; null until then. */
    userId: p.text().strictNullable(),
    /** The minimum time between polls. It grows with every poll that comes too soon. */
    intervalSeconds: p.integer(),
    /** The time of the last poll by the system clock; null before the first poll. */
    polledAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
    expiresAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'oauth_device_codes_by_app', properties: ['appId', 'status', 'expiresAtMs'] },
    { name: 'oauth_device_codes_by_expiry', properties: ['expiresAtMs'] },
  ],
  uniques: [{ name: 'oauth_device_codes_user_code', properties: ['userCode'] }],
});

export type OauthDeviceCode = InferEntity<typeof OauthDeviceCodeEntity>;

/** A refresh token of a grant. Used tokens are kept for a while, so that their reuse is noticed. */
export const OauthRefreshTokenEntity = defineEntity({
  name: 'OauthRefreshToken',
  tableName: 'oauth_refresh_tokens',
  properties: {
    /** Hex SHA-256 of the token. */
    id: p.text().primary(),
    grantId: p.text(),
    createdAtMs: p.bigint('number'),
    /** When the token was used; null for the token that can still be used. */
    usedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'oauth_refresh_tokens_by_grant', properties: ['grantId'] },
    { name: 'oauth_refresh_tokens_by_use', properties: ['usedAtMs'], where: 'used_at_ms is not null' },
  ],
  uniques: [
    // INVARIANT: each grant has at most one unused refresh token.
    { name: 'oauth_refresh_tokens_live', properties: ['grantId'], where: 'used_at_ms is null' },
  ],
});

/** An attempt of a user to decide on a code that does not exist. */
export const OauthWrongCodeEntity = defineEntity({
  name: 'OauthWrongCode',
  tableName: 'oauth_wrong_codes',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** The time by the system clock. */
    atMs: p.bigint('number'),
  },
  indexes: [
    { name: 'oauth_wrong_codes_by_app', properties: ['appId', 'atMs'] },
    { name: 'oauth_wrong_codes_by_user', properties: ['userId', 'atMs'] },
    { name: 'oauth_wrong_codes_by_age', properties: ['atMs'] },
  ],
});
