import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A set of members with a threshold: the owner of a resource, or an additional signer of a wallet. */
export const KeyQuorumEntity = defineEntity({
  name: 'KeyQuorum',
  tableName: 'key_quorums',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    displayName: p.text().strictNullable(),
    /** Null = all members. */
    authorizationThreshold: p.integer().strictNullable(),
    /** For a quorum created implicitly for an `owner`: its only member, as `user:` or `key:` and the member. */
    implicitFor: p.text().strictNullable(),
    /** The name of the voucher key, if its users were pinned when it was created. */
    voucher: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'key_quorums_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
  uniques: [
    {
      name: 'key_quorums_implicit_for',
      properties: ['appId', 'implicitFor'],
      where: 'implicit_for is not null',
    },
  ],
});

export type KeyQuorumRow = InferEntity<typeof KeyQuorumEntity>;
