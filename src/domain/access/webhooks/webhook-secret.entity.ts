import { defineEntity, p } from '@mikro-orm/core';

/** A secret that an endpoint's events are signed with, sealed like a wallet's. */
export const WebhookSecretEntity = defineEntity({
  name: 'WebhookSecret',
  tableName: 'webhook_secrets',
  properties: {
    /** Binds the sealed secret, as a wallet's id binds its own. */
    id: p.text().primary(),
    endpointId: p.text(),
    appId: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    createdAtMs: p.bigint('number'),
    /** Null for the newest. */
    expiresAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'webhook_secrets_by_endpoint', properties: ['endpointId'] }],
});
