import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A secret with which an organization authenticates. Only the response to its creation contains the secret itself. */
export const OrganizationSecretEntity = defineEntity({
  name: 'OrganizationSecret',
  tableName: 'organization_secrets',
  properties: {
    id: p.text().primary(),
    organizationId: p.text(),
    /** Hex SHA-256. */
    secretHash: p.text(),
    /** The last four characters, to distinguish secrets. */
    lastFour: p.text(),
    /**
     * Canonical base64 SubjectPublicKeyInfo of the key that must sign requests with this secret; null if no signature
     * is needed.
     */
    signingPublicKey: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    revokedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'organization_secrets_by_age', properties: ['organizationId', 'createdAtMs', 'id'] }],
  uniques: [{ name: 'organization_secrets_hash', properties: ['secretHash'] }],
});

export type StoredOrganizationSecret = InferEntity<typeof OrganizationSecretEntity>;

/** A business customer of an app. */
export const OrganizationEntity = defineEntity({
  name: 'Organization',
  tableName: 'organizations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    displayName: p.text(),
    /** The key quorum that owns new wallets of the organization if the request names no owner. */
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
