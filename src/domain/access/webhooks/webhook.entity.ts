import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/sql-functions.ts';

/** The delivery of one event to one endpoint. Its body is the payload of the event. */
export const WebhookDeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    /** Derived from the event and the endpoint, so that an event is not delivered to an endpoint twice. */
    id: p.text().primary(),
    endpointId: p.text(),
    /** Part of the primary key, because PostgreSQL partitions the table by it. The id alone is already unique. */
    eventSequence: p.bigint('number').primary().autoincrement(false),
    eventId: p.text(),
    eventType: p.text(),
    /** `pending`, `delivered` or `failed`. */
    status: p.text(),
    /**
     * The resource whose deliveries are sent in order. Null if the order does not matter, and once the delivery has
     * ended.
     */
    orderKey: p.text().strictNullable(),
    /** The number of failed attempts since the start of the schedule. A replay restarts the schedule. */
    failures: p.integer(),
    attemptCount: p.integer(),
    /** JSON array of the last attempts, oldest first. */
    attempts: p.text(),
    /** When the next attempt is due; null once the delivery is no longer pending. */
    nextAttemptAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
    finishedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'webhook_deliveries_by_endpoint', properties: ['endpointId', 'eventSequence'] },
    // For lists of deliveries with one status. Most deliveries are delivered; their lists use the general index.
    {
      name: 'webhook_deliveries_failed',
      properties: ['endpointId', 'eventSequence'],
      where: "status = 'failed'",
    },
    {
      name: 'webhook_deliveries_pending',
      properties: ['endpointId', 'eventSequence'],
      where: "status = 'pending'",
    },
    {
      name: 'webhook_deliveries_due',
      properties: ['endpointId', 'nextAttemptAtMs', 'eventSequence'],
      where: 'next_attempt_at_ms is not null',
    },
    {
      name: 'webhook_deliveries_in_order',
      properties: ['endpointId', 'orderKey', 'eventSequence'],
      where: 'order_key is not null',
    },
    { name: 'webhook_deliveries_by_event', properties: ['eventSequence'] },
    {
      name: 'webhook_deliveries_finished',
      properties: ['finishedAtMs'],
      where: 'finished_at_ms is not null',
    },
  ],
});

/** A URL to which an app's events are sent, and the process that currently serves it. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    url: p.text(),
    description: p.text().strictNullable(),
    /** An array with the entry `*` stands for every type. */
    eventTypes: jsonText<string[]>(),
    /** `enabled` or `disabled`. */
    status: p.text(),
    /** `requested` (by the app) or `failing`; null while the endpoint is enabled. */
    disabledReason: p.text().strictNullable(),
    /**
     * Events up to this sequence were recorded before the endpoint was created or enabled, so it does not receive
     * them.
     */
    afterSequence: p.bigint('number'),
    /** The time of the first failure since the last success; null if there was none. */
    failingSinceMs: p.bigint('number').strictNullable(),
    /**
     * The number of days with failures since the last success. `lastFailingDay` is the number of the last such day,
     * counting from 0.
     */
    failingDayCount: p.integer(),
    lastFailingDay: p.integer(),
    /** A lower bound for the earliest `nextAttemptAtMs` of its deliveries; null without pending deliveries. */
    nextDueAtMs: p.bigint('number').strictNullable(),
    /** The process that has claimed the endpoint until `leasedUntilMs`; null if none has. */
    leaseOwner: p.text().strictNullable(),
    leasedUntilMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'webhook_endpoints_by_app', properties: ['appId', 'createdAtMs', 'id'] },
    {
      name: 'webhook_endpoints_due',
      properties: ['nextDueAtMs'],
      where: 'next_due_at_ms is not null',
    },
  ],
});

export type StoredWebhookEndpoint = InferEntity<typeof WebhookEndpointEntity>;

/** A secret that signs the events of an endpoint, sealed like a wallet's key. */
export const WebhookSecretEntity = defineEntity({
  name: 'WebhookSecret',
  tableName: 'webhook_secrets',
  properties: {
    /** The seal of the secret is bound to this id. */
    id: p.text().primary(),
    endpointId: p.text(),
    appId: p.text(),
    sealedSecret: p.blob(),
    wrappedDataKey: p.blob(),
    masterKeyId: p.text(),
    createdAtMs: p.bigint('number'),
    /** When the secret stops signing; null for the newest secret. */
    expiresAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'webhook_secrets_by_endpoint', properties: ['endpointId'] }],
});
