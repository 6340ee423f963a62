import { defineEntity, p } from '@mikro-orm/core';

/** The public half of a key that a user may sign with for a while. The private half is never stored. */
export const UserKeyEntity = defineEntity({
  name: 'UserKey',
  tableName: 'user_keys',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** Canonical base64 SubjectPublicKeyInfo. */
    publicKey: p.text(),
    /** JSON array of the ids of the only intents that the key may authorize; null = everything. */
    intentIds: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** The first millisecond at which the key counts no more. */
    expiresAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'user_keys_by_user', properties: ['userId', 'createdAtMs', 'id'] }],
});
