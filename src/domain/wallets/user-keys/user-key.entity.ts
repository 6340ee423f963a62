import { defineEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/sql-functions.ts';

/** The public key of a user's temporary key. The private key is never stored. */
export const UserKeyEntity = defineEntity({
  name: 'UserKey',
  tableName: 'user_keys',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** The `sid` of the access token for which the key was issued; null if it was a token of the app's own login. */
    sessionId: p.text().strictNullable(),
    /** Canonical base64 SubjectPublicKeyInfo. */
    publicKey: p.text(),
    /** The only intents that the key may authorize; null if it may authorize everything. */
    intentIds: jsonText<string[]>().strictNullable(),
    /** JSON of the `Voucher`, if the key store vouches for the key. */
    voucher: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** The first millisecond at which the key is no longer valid. */
    expiresAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'user_keys_by_user', properties: ['userId', 'createdAtMs', 'id'] },
    { name: 'user_keys_by_session', properties: ['sessionId'], where: 'session_id is not null' },
  ],
});
