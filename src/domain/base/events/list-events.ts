import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { notFound } from '../../../errors.ts';
import type { Tables } from '../../tables.ts';

// HOT: runs for every recorded event (bench `webhooks`).

/** An event as it was recorded. */
export interface RecordedEvent {
  readonly sequence: number;
  readonly id: string;
  readonly appId: string;
  readonly type: string;
  /** The webhook's body as JSON, with the contract's field names. */
  readonly payload: string;
  readonly createdAtMs: number;
}

const columns = ['sequence', 'id', 'app_id', 'type', 'payload', 'created_at_ms'] as const;

/** The sequence of the newest event; 0 when there are no events. */
export async function newestSequence(em: SqlEntityManager): Promise<number> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select('sequence')
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.sequence ?? 0;
}

/**
 * The next events after `afterSequence` up to `untilSequence`, in the order in which they were recorded, at most
 * `limit`. `types` and `appId` filter them.
 */
export async function listEvents(
  em: SqlEntityManager,
  range: {
    readonly afterSequence: number;
    readonly untilSequence: number;
    readonly limit: number;
    readonly types?: readonly string[] | undefined;
    readonly appId?: string | undefined;
  },
): Promise<RecordedEvent[]> {
  const { afterSequence, untilSequence, limit, types, appId } = range;
  let query = em
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select(columns)
    .where('sequence', '>', afterSequence)
    .where('sequence', '<=', untilSequence);
  if (types !== undefined) query = query.where('type', 'in', types);
  if (appId !== undefined) query = query.where('app_id', '=', appId);
  const rows = await query.orderBy('sequence').limit(limit).execute();
  return rows.map(toEvent);
}

/**
 * The event with this id, whichever app it belongs to.
 *
 * @throws ApiError not_found
 */
export async function findEvent(em: SqlEntityManager, id: string): Promise<RecordedEvent> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select(columns)
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) throw notFound('Event');
  return toEvent(row);
}

/**
 * The events whose payload contains one of `ids` as a value, recorded since `sinceMs`, oldest first, at most `limit`.
 *
 * @param ids without characters that JSON or LIKE would escape.
 */
export async function listEventsAbout(
  em: SqlEntityManager,
  {
    ids,
    sinceMs,
    limit,
  }: { readonly ids: readonly string[]; readonly sinceMs: number; readonly limit: number },
): Promise<RecordedEvent[]> {
  if (ids.length === 0) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select(columns)
    .where('created_at_ms', '>=', sinceMs)
    .where(({ eb, or }) => or(ids.map((id) => eb('payload', 'like', `%"${id}"%`))))
    .orderBy('sequence')
    .limit(limit)
    .execute();
  return rows.map(toEvent);
}

/** Deletes every event. */
export async function dropEvents(em: SqlEntityManager): Promise<void> {
  await em.getKysely<Tables>().deleteFrom('outbox_events').execute();
}

function toEvent(row: Pick<Selectable<Tables['outbox_events']>, (typeof columns)[number]>): RecordedEvent {
  return {
    sequence: row.sequence,
    id: row.id,
    appId: row.app_id,
    type: row.type,
    payload: row.payload,
    createdAtMs: row.created_at_ms,
  };
}
