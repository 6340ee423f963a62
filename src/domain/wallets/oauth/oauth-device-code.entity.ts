import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** `expired` is not stored: it follows from the time. */
export type DeviceCodeStatus = 'pending' | 'approved' | 'denied' | 'redeemed';

/** A device that waits for its user's decision, or waited (RFC 8628). */
export const OauthDeviceCodeEntity = defineEntity({
  name: 'OauthDeviceCode',
  tableName: 'oauth_device_codes',
  properties: {
    /** Hex SHA-256 of the device code. */
    id: p.text().primary(),
    appId: p.text(),
    /** Upper case, without the hyphen. */
    userCode: p.text(),
    status: p.text().$type<DeviceCodeStatus>(),
    /** The network of a client without a secret: an IPv4 address or an IPv6 /64; null for other clients. */
    publicNetwork: p.text().strictNullable(),
    /** Who approved it; null until then. */
    userId: p.text().strictNullable(),
    /** The minimum time between polls; grows with every poll that comes too soon. */
    intervalSeconds: p.integer(),
    /** Time of the last poll by the clock of the machine; null before the first. */
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
