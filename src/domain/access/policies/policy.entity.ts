import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * The secret of a policy that has or had an owner. Wallets pin the secret by its name, and the key store seals it under
 * the policy's content.
 */
export const PolicySealEntity = defineEntity({
  name: 'PolicySeal',
  tableName: 'policy_seals',
  properties: {
    /** The id of the policy. */
    id: p.text().primary(),
    appId: p.text(),
    /** JSON of the `PolicyContent` under which the secret is sealed. */
    content: p.text(),
    /** The name of the secret, which wallets pin. */
    name: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
  },
  indexes: [{ name: 'policy_seals_by_master_key', properties: ['masterKeyId'] }],
});

/** A policy. Its rules are one document: they are read, evaluated and replaced together. */
export const PolicyEntity = defineEntity({
  name: 'Policy',
  tableName: 'policies',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    chainType: p.text(),
    /**
     * JSON array of rules in wire form, in order. The property is a string also in the entity: the entity manager
     * compares properties at every flush, and would serialize up to a megabyte of rules each time.
     */
    rules: p.text().default('[]'),
    /** SHA-256 of the rules in base64. It tells whether a cached compilation of the policy is current. */
    rulesDigest: p.text(),
    /** Increases with each change of the policy. */
    revision: p.integer().default(0),
    /** The key quorum that owns the policy; null without an owner. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'policies_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
    { name: 'policies_by_age', properties: ['appId', 'createdAtMs', 'id'] },
  ],
});

export type PolicyDocument = InferEntity<typeof PolicyEntity>;
