import type { SqlEntityManager } from '@mikro-orm/sql';
import { OutboxEventEntity } from '../../base/events/outbox-event.entity.ts';
import { WebhookDeliveryEntity } from './webhook-delivery.entity.ts';

/** What waits for delivery. */
export interface WaitingDeliveries {
  /** Events that no delivery was made of yet. */
  readonly events: number;
  readonly deliveries: number;
}

export async function countWaitingDeliveries(em: SqlEntityManager): Promise<WaitingDeliveries> {
  return {
    events: await em.count(OutboxEventEntity, { fannedOutAtMs: null }),
    deliveries: await em.count(WebhookDeliveryEntity, { nextAttemptAtMs: { $ne: null } }),
  };
}

/** Gives up everything that waits for delivery. Endpoints can have it replayed. */
export async function skipWaitingDeliveries(em: SqlEntityManager, nowMs: number): Promise<void> {
  await em.nativeUpdate(OutboxEventEntity, { fannedOutAtMs: null }, { fannedOutAtMs: nowMs });
  await em.nativeUpdate(
    WebhookDeliveryEntity,
    { nextAttemptAtMs: { $ne: null } },
    { status: 'failed', orderKey: null, nextAttemptAtMs: null, finishedAtMs: nowMs },
  );
}
