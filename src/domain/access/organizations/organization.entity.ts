import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A business customer of an app. */
export const OrganizationEntity = defineEntity({
  name: 'Organization',
  tableName: 'organizations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    displayName: p.text(),
    /** The key quorum that owns the organization's wallets created without an explicit owner. */
    defaultKeyQuorumId: p.text(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'organizations_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'organizations_by_key_quorum', properties: ['defaultKeyQuorumId'] },
  ],
});

export type StoredOrganization = InferEntity<typeof OrganizationEntity>;
