import { defineEntity, p } from '@mikro-orm/core';

/** A domain event, recorded in the transaction of the change it tells of and delivered later. */
export const OutboxEventEntity = defineEntity({
  name: 'OutboxEvent',
  tableName: 'outbox_events',
  properties: {
    /** Grows with every event; the order in which deliveries are begun. */
    sequence: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    /** `msg_` and a cuid2. */
    id: p.text(),
    appId: p.text(),
    type: p.text(),
    /** The webhook's body as JSON, `type` included. */
    payload: p.text(),
    /** The wallet, user, intent or other resource that the event is about. */
    resourceId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When it was given to the endpoints that ask for it; null until then. */
    fannedOutAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'outbox_events_by_app', properties: ['appId', 'sequence'] },
    { name: 'outbox_events_by_age', properties: ['createdAtMs'] },
    // Small at all times, whatever the table holds.
    {
      name: 'outbox_events_to_fan_out',
      properties: ['sequence'],
      where: 'fanned_out_at_ms is null',
    },
  ],
  uniques: [{ name: 'outbox_events_id', properties: ['id'] }],
});
