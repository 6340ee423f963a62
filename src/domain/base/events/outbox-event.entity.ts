import { defineEntity, p } from '@mikro-orm/core';

/** A domain event, recorded in the transaction of its change and delivered later. */
export const OutboxEventEntity = defineEntity({
  name: 'OutboxEvent',
  tableName: 'outbox_events',
  properties: {
    /** Increases with every event. Events are fanned out to endpoints in this order. */
    sequence: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    /** `msg_` and a cuid2. */
    id: p.text(),
    appId: p.text(),
    type: p.text(),
    /** The webhook's body as JSON, including `type`. */
    payload: p.text(),
    /** The id of the wallet, user, intent or other resource that the event is about; null if the payload names none. */
    resourceId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When deliveries to the subscribed endpoints were created; null until then. */
    fannedOutAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'outbox_events_by_app', properties: ['appId', 'sequence'] },
    // Not unique, because a unique index of a partitioned table must contain the partition key.
    { name: 'outbox_events_id', properties: ['id'] },
    { name: 'outbox_events_by_age', properties: ['createdAtMs'] },
    // This partial index stays small while the table grows.
    {
      name: 'outbox_events_to_fan_out',
      properties: ['sequence'],
      where: 'fanned_out_at_ms is null',
    },
  ],
});
