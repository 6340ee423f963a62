import { defineEntity, p } from '@mikro-orm/core';

/** A secret that signs the events of an endpoint, sealed like a wallet's. */
export const WebhookSecretEntity = defineEntity({
  name: 'WebhookSecret',
  tableName: 'webhook_secrets',
  properties: {
    /** The sealed secret is bound to this id. */
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
