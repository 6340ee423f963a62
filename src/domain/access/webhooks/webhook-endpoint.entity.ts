import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/json-text.ts';

/** An address that an app's events are sent to, and which process is sending to it. */
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
    /** Events up to this sequence were recorded before it was made or enabled, and pass it by. */
    afterSequence: p.bigint('number'),
    /** The first failure since the last success. */
    failingSinceMs: p.bigint('number').strictNullable(),
    /** On how many of the days since then an attempt failed, and the last of them, the first being 0. */
    failingDayCount: p.integer(),
    lastFailingDay: p.integer(),
    /** Not after the earliest `nextAttemptAtMs` of its deliveries; null when none is pending. */
    nextDueAtMs: p.bigint('number').strictNullable(),
    /** The process that sends to it, until `leasedUntilMs` unless it asks for more. */
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
