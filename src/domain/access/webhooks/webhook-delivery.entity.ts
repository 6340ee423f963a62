import { defineEntity, p } from '@mikro-orm/core';

/** One event on its way to one endpoint. Its body is the payload of the event. */
export const WebhookDeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    /** Follows from event and endpoint, so that no event is given to an endpoint twice. */
    id: p.text().primary(),
    endpointId: p.text(),
    eventSequence: p.bigint('number'),
    eventId: p.text(),
    eventType: p.text(),
    /** `pending`, `delivered` or `failed`. */
    status: p.text(),
    /** While pending: the resource among whose deliveries to the endpoint this one keeps its place; null for none. */
    orderKey: p.text().strictNullable(),
    /** Attempts that failed since the schedule began, which a replay does anew. */
    failures: p.integer(),
    attemptCount: p.integer(),
    /** JSON array of the last attempts, oldest first. */
    attempts: p.text(),
    /** Null exactly when the delivery is not pending. */
    nextAttemptAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
    finishedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'webhook_deliveries_by_endpoint', properties: ['endpointId', 'eventSequence'] },
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
