import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/json-text.ts';

/** A URL that an app's events are sent to, and the process that serves it. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    url: p.text(),
    description: p.text().strictNullable(),
    /** `*` for every type. */
    eventTypes: jsonText<string[]>(),
    /** `enabled` or `disabled`. */
    status: p.text(),
    /** `requested` or `failing`; null while it is enabled. */
    disabledReason: p.text().strictNullable(),
    /**
     * Events up to this sequence were recorded before the endpoint was created or enabled, so it does not receive
     * them.
     */
    afterSequence: p.bigint('number'),
    /** The first failure since the last success. */
    failingSinceMs: p.bigint('number').strictNullable(),
    /** The number of days with failures since then, and the last of these days, counted from 0. */
    failingDayCount: p.integer(),
    lastFailingDay: p.integer(),
    /** At most the earliest `nextAttemptAtMs` of its deliveries; null without pending ones. */
    nextDueAtMs: p.bigint('number').strictNullable(),
    /** The process that has claimed it, until `leasedUntilMs`. */
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
