import { defineEntity, p } from '@mikro-orm/core';

/** A change of a key quorum, with the signed request that made it: the vault follows these to the current members. */
export const KeyQuorumChangeEntity = defineEntity({
  name: 'KeyQuorumChange',
  tableName: 'key_quorum_changes',
  properties: {
    keyQuorumId: p.text().primary(),
    /** From 0. */
    position: p.integer().primary(),
    /** JSON of the `QuorumBase`: what it was before its first change. Null in others. */
    base: p.text().strictNullable(),
    /** JSON of the `QuorumChange`. */
    change: p.text(),
  },
});
