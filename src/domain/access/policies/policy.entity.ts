import { defineEntity, p } from '@mikro-orm/core';

/** What the wallets that name it may do. Its rules are one document: they are read, judged and replaced together. */
export const PolicyEntity = defineEntity({
  name: 'Policy',
  tableName: 'policies',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    chainType: p.text(),
    /** JSON array of rules as answered, in order. */
    rules: p.text().default('[]'),
    /** SHA-256 of the rules in base64: a compiled policy is kept for as long as it stays the same. */
    rulesDigest: p.text(),
    /** Grows with each change of the rules. */
    revision: p.integer().default(0),
    /** The key quorum that owns the policy. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'policies_by_owner', properties: ['ownerId'], where: 'owner_id is not null' }],
});
