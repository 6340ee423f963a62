import { defineEntity, p } from '@mikro-orm/core';

/** One identity of a user: an e-mail address, a phone number, a custom user id and so on. */
export const LinkedAccountEntity = defineEntity({
  name: 'LinkedAccount',
  tableName: 'linked_accounts',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** Increases with every account that the user links. */
    position: p.integer(),
    /** The `type` of the wire. */
    type: p.text(),
    /** `lookupKey` of what is unique within the app and type: the lower-case address, number, custom user id. */
    subject: p.text(),
    /** `lookupKey` of the lower-case public name; null if the kind has none. */
    username: p.text().strictNullable(),
    /** The wallet held by the service; its address and keys are read from there. */
    walletId: p.text().strictNullable(),
    /** JSON object: the other members of the wire object; for an embedded wallet only `wallet_index`. */
    details: p.text().default('{}'),
    verifiedAtMs: p.bigint('number').strictNullable(),
    firstVerifiedAtMs: p.bigint('number').strictNullable(),
    latestVerifiedAtMs: p.bigint('number').strictNullable(),
    /** When it may first be used to log in, for an account that was linked without the user's key; null: at once. */
    usableAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'linked_accounts_by_user', properties: ['userId', 'position'] },
    {
      name: 'linked_accounts_by_username',
      properties: ['appId', 'type', 'username', 'latestVerifiedAtMs', 'id'],
      where: 'username is not null',
    },
  ],
  uniques: [{ name: 'linked_accounts_subject', properties: ['appId', 'type', 'subject'] }],
});
