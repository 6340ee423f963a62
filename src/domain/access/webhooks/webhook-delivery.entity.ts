import { defineEntity, p } from '@mikro-orm/core';

/** The delivery of one event to one endpoint. Its body is the payload of the event. */
export const WebhookDeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    /** Derived from event and endpoint, so that an event is not delivered to an endpoint twice. */
    id: p.text().primary(),
    endpointId: p.text(),
    /** In the key because PostgreSQL partitions the table by it; an id has one. */
    eventSequence: p.bigint('number').primary().autoincrement(false),
    eventId: p.text(),
    eventType: p.text(),
    /** `pending`, `delivered` or `failed`. */
    status: p.text(),
    /** While pending: the resource within whose deliveries the order is kept; null for no order. */
    orderKey: p.text().strictNullable(),
    /** Failed attempts since the start of the schedule. A replay restarts the schedule. */
    failures: p.integer(),
    attemptCount: p.integer(),
    /** JSON array of the last attempts, oldest first. */
    attempts: p.text(),
    /** Null if and only if the delivery is not pending. */
    nextAttemptAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
    finishedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'webhook_deliveries_by_endpoint', properties: ['endpointId', 'eventSequence'] },
    // For lists of those with one status. Most are delivered, which the index of all serves.
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
