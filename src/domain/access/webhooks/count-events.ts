import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Tables } from '../../tables.ts';

// HOT: the log can hold a million events, so the database counts them.

/** How often events of a type were recorded, and their deliveries acknowledged. */
export interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/** The events of every app by type, sorted by type. */
export async function countEvents(em: SqlEntityManager): Promise<EventCount[]> {
  const db = em.getKysely<Tables>();
  const recorded = await db
    .selectFrom('outbox_events')
    .select(['type', ({ fn }) => fn.countAll().as('count')])
    .groupBy('type')
    .orderBy('type')
    .execute();
  const delivered = await db
    .selectFrom('webhook_deliveries')
    .select(['event_type', ({ fn }) => fn.countAll().as('count')])
    .where('status', '=', 'delivered')
    .groupBy('event_type')
    .execute();
  const acknowledged = new Map(delivered.map(({ event_type: type, count }) => [type, Number(count)]));
  return recorded.map(({ type, count }) => ({
    type,
    recorded: Number(count),
    acknowledged: acknowledged.get(type) ?? 0,
  }));
}
