import { defineEntity, p } from '@mikro-orm/core';

/** One member of a key quorum, in the order in which members of its kind were given. */
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
    /** Of a pinned user: the id in the app's login. */
    subject: p.text().strictNullable(),
  },
  indexes: [{ name: 'key_quorum_members_by_member', properties: ['member', 'kind'] }],
});
