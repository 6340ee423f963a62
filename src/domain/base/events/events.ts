import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { loadOnce } from '../../../engine/load-once.ts';
import { notFound } from '../../../errors.ts';
import type { AuditedChange } from '../../../ports/audit.ts';
import type { OperationContext, UnitNotes } from '../../../ports/operation-context.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { OutboxEventEntity } from './outbox-event.entity.ts';

export interface RecordedEvent {
  readonly sequence: number;
  readonly id: string;
  readonly appId: string;
  readonly type: string;
  /** The webhook's body as JSON, with the field names of the API document. */
  readonly payload: string;
  readonly createdAtMs: number;
  /** When the deliveries to the subscribed endpoints were created; null until then. */
  readonly fannedOutAtMs: number | null;
}

const unmanaged = { disableIdentityMap: true } as const;

/** Returns the sequence of the newest event; 0 when there are no events. */
export async function newestSequence(em: SqlEntityManager): Promise<number> {
  const [newest] = await em.find(
    OutboxEventEntity,
    {},
    { ...unmanaged, fields: ['sequence'], orderBy: { sequence: 'desc' }, limit: 1 },
  );
  return newest?.sequence ?? 0;
}

/**
 * Lists the events after `afterSequence` up to `untilSequence`, in the order in which they were recorded. Returns at
 * most `limit` events; `types` and `appId` filter them.
 */
export function listEvents(
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
  const wanted = {
    sequence: { $gt: afterSequence, $lte: untilSequence },
    ...(types === undefined ? {} : { type: { $in: types } }),
    ...(appId === undefined ? {} : { appId }),
  };
  return em.find(OutboxEventEntity, wanted, { ...unmanaged, orderBy: { sequence: 'asc' }, limit });
}

/**
 * Finds the event with this id, whichever app it belongs to.
 *
 * @throws ApiError not_found
 */
export async function findEvent(em: SqlEntityManager, id: string): Promise<RecordedEvent> {
  const event = await em.findOne(OutboxEventEntity, { id }, unmanaged);
  if (event === null) throw notFound('Event');
  return event;
}

/**
 * Lists the events since `sinceMs` whose payload contains one of `ids` as a value, oldest first, at most `limit`.
 *
 * @param ids must not contain characters that JSON or LIKE would escape.
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
  const about = ids.map((id) => ({ payload: { $like: `%"${id}"%` } }));
  const wanted = { createdAtMs: { $gte: sinceMs }, $or: about };
  return em.find(OutboxEventEntity, wanted, { ...unmanaged, orderBy: { sequence: 'asc' }, limit });
}

/** Deletes the events of all apps, delivered or not. */
export async function dropEvents(em: SqlEntityManager): Promise<void> {
  await em.nativeDelete(OutboxEventEntity, {});
}

/** Adds an event to the notes of the unit of work, as an event and as a change for the audit log. */
function noteEvent(
  notes: UnitNotes,
  {
    id,
    type,
    appId,
    resourceId,
  }: {
    readonly id: string;
    readonly type: string;
    readonly appId: string;
    readonly resourceId: string | null;
  },
): void {
  notes.events.push({ id, type });
  noteChange(notes, { appId, what: type, id: resourceId });
}

/** Adds the id of a stored transaction to the notes of the unit of work. */
export function noteTransaction(notes: UnitNotes, id: string): void {
  requireOpen(notes);
  notes.transactions.push(id);
}

/** Adds the policies that allowed an action to the notes of the unit of work. */
export function notePolicies(notes: UnitNotes, ids: readonly string[]): void {
  requireOpen(notes);
  notes.policies.push(...ids);
}

/**
 * Adds a change to the notes of the unit of work, from which the audit record is written. `recordEvent` calls it.
 *
 * CHOICE: the audit log contains those actions of jobs that record an event or note a change. It does not contain
 * leases, due times, read positions and deletions of expired rows, which are the mechanics of jobs.
 */
export function noteChange(notes: UnitNotes, change: AuditedChange): void {
  requireOpen(notes);
  notes.changes.push(change);
}

/** Marks the unit of work as having something to deliver. Its commit then wakes the delivery job. */
export function announceDelivery(notes: UnitNotes): void {
  requireOpen(notes);
  notes.hasDeliveries = true;
}

function requireOpen({ isOver }: UnitNotes): void {
  assert(!isOver, 'noted for a unit of work that has ended');
}

export type EventContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>;

interface NewEvent {
  /** The app whose endpoints receive the event. */
  readonly appId: string;
  /** One of the webhooks of the API document, for example `wallet.archived`. */
  readonly type: string;
  /** The fields of the webhook's body except `type`. */
  readonly payload: object;
}

/**
 * Records a domain event in the transaction of its change. A job delivers it later.
 *
 * @returns the event's id, which every delivery carries as `webhook-id`.
 * @throws AssertionError when the API document has no such event or the payload does not match it. Both are bugs of
 * this server.
 */
export function recordEvent(context: EventContext, event: NewEvent): Promise<string> {
  return storeEvent(context, event, null);
}

interface StoredEvent {
  readonly id: string;
  readonly sequence: number;
}

/** Records an event for a single endpoint; no other endpoint receives it. The caller creates the delivery. */
export async function recordEventForOne(context: EventContext, event: NewEvent): Promise<StoredEvent> {
  const id = await storeEvent(context, event, context.nowMs);
  return context.em.findOneOrFail(OutboxEventEntity, { id }, unmanaged);
}

async function storeEvent(
  context: EventContext,
  { appId, type, payload }: NewEvent,
  fannedOutAtMs: number | null,
): Promise<string> {
  const body = { type, ...payload };
  await assertKeepsContract(type, body);
  const id = `msg_${context.ids.cuid2()}`;
  const resourceId = resourceOf(body);
  const row = {
    id,
    app_id: appId,
    type,
    payload: JSON.stringify(body),
    resource_id: resourceId,
    created_at_ms: context.nowMs,
    fanned_out_at_ms: fannedOutAtMs,
  };
  await insertEvent(context.em, row, { isDeferred: true });
  announceDelivery(context.notes);
  noteEvent(context.notes, { id, type, appId, resourceId });
  return id;
}

// HOT: runs for every recorded event (bench `webhooks`).
type EventRow = Omit<Selectable<Tables['outbox_events']>, 'sequence'>;

const insertEvent = prepareQuery<EventRow>((database, event) =>
  database.insertInto('outbox_events').values({
    id: event.id,
    app_id: event.app_id,
    type: event.type,
    payload: event.payload,
    resource_id: event.resource_id,
    created_at_ms: event.created_at_ms,
    fanned_out_at_ms: event.fanned_out_at_ms,
  }),
);

// Loads the validators with the first event, because they are large and many processes never record an event.
const loadValidators = loadOnce(() => import('../../../generated/webhook-validators.js'));

async function assertKeepsContract(type: string, body: object): Promise<void> {
  const { webhookValidators } = await loadValidators();
  const validate = webhookValidators[type];
  assert(validate !== undefined, `the contract has no event \`${type}\``);
  const isValid = validate(body);
  const fault = validate.errors?.[0];
  assert(isValid, `event \`${type}\`${fault?.instancePath ?? ''}: ${fault?.message ?? 'invalid'}`);
}

/** The fields that identify an event's resource, most specific first. */
export const resourceFields = [
  'intent_id',
  'wallet_action_id',
  'transaction_id',
  'wallet_id',
  'user_id',
  'organization_id',
] as const;

function resourceOf(body: object): string | null {
  const fields = new Map<string, unknown>(Object.entries(body));
  const user = fields.get('user') as { id?: unknown } | undefined;
  const ids = [...resourceFields.map((name) => fields.get(name)), user?.id];
  return (ids.find((id) => typeof id === 'string') as string | undefined) ?? null;
}
