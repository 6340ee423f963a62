import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * One change of a key quorum, with the signed request that made it. The key store derives the current members from
 * these changes.
 */
export const KeyQuorumChangeEntity = defineEntity({
  name: 'KeyQuorumChange',
  tableName: 'key_quorum_changes',
  properties: {
    keyQuorumId: p.text().primary(),
    /** The number of the change among the changes of its key quorum, counting from 0. */
    position: p.integer().primary(),
    /** JSON of the `QuorumBase`: the key quorum before its first change. Null except at position 0. */
    base: p.text().strictNullable(),
    /** JSON of the `QuorumChange`. */
    change: p.text(),
  },
});

/** One member of a key quorum. Rows keep the order of the request among members of the same kind. */
export const KeyQuorumMemberEntity = defineEntity({
  name: 'KeyQuorumMember',
  tableName: 'key_quorum_members',
  properties: {
    keyQuorumId: p.text().primary(),
    position: p.integer().primary(),
    /** `public_key`, `user` or `key_quorum`. */
    kind: p.text(),
    /** Canonical base64 SubjectPublicKeyInfo, user id, or key quorum id. */
    member: p.text(),
    /** Only for a pinned user: the user's id in the app's own login. */
    subject: p.text().strictNullable(),
  },
  indexes: [{ name: 'key_quorum_members_by_member', properties: ['member', 'kind'] }],
});

/** The key store's seal over the changes of a key quorum. It proves that the key store has verified each change. */
export const KeyQuorumSealEntity = defineEntity({
  name: 'KeyQuorumSeal',
  tableName: 'key_quorum_seals',
  properties: {
    /** The key quorum's id. */
    id: p.text().primary(),
    appId: p.text(),
    /** The digest of the last change, in hex. */
    digest: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'key_quorum_seals_by_master_key', properties: ['masterKeyId'] }],
});

/** A set of members with a threshold: the owner of a resource, or an additional signer of a wallet. */
export const KeyQuorumEntity = defineEntity({
  name: 'KeyQuorum',
  tableName: 'key_quorums',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    displayName: p.text().strictNullable(),
    /** The number of members that must sign; null means all. */
    authorizationThreshold: p.integer().strictNullable(),
    /**
     * Only for an unchanged key quorum that was created for an `owner` field: its only member, as `user:…` or `key:…`.
     */
    implicitFor: p.text().strictNullable(),
    /** The name of the voucher key, if the users of the quorum were pinned at its creation. */
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

/** The key with which the key store vouches for the keys of an app's users. */
export const VoucherKeyEntity = defineEntity({
  name: 'VoucherKey',
  tableName: 'voucher_keys',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** The name of the key, which key quorums pin. */
    name: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'voucher_keys_by_master_key', properties: ['masterKeyId'] }],
  uniques: [{ name: 'voucher_keys_app', properties: ['appId'] }],
});
