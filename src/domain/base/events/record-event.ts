import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { loadOnce } from '../../../load-once.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { savepointsOf } from '../../../storage/savepoint.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { noteEvent } from './stored-effects.ts';

// HOT: runs for every recorded event (bench `webhooks`).

/**
 * Units of work with something to deliver, so that the commit can wake the delivery job. A WeakSet, so that requests
 * without events pay nothing.
 */
const delivering = new WeakSet<SqlEntityManager>();

/** Marks the unit of work of `em` as having something to deliver. */
export function announceDelivery(em: SqlEntityManager): void {
  delivering.add(em);
}

/** Whether the unit of work of `em` has something to deliver. */
export function hasAnnouncedDelivery(em: SqlEntityManager): boolean {
  return delivering.has(em) || savepointsOf(em).some(hasAnnouncedDelivery);
}

export type EventContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs'>;

/** An event that is about to be recorded. */
export interface NewEvent {
  /** The app whose endpoints it is delivered to. */
  readonly appId: string;
  /** One of the contract's webhooks, for example `wallet.archived`. */
  readonly type: string;
  /** The webhook's fields besides `type`. */
  readonly payload: object;
}

/**
 * Records a domain event in the transaction of its change, to be delivered later.
 *
 * @returns the event's id, which every delivery carries as `webhook-id`.
 * @throws AssertionError when the contract has no such event or the payload does not match it, which is a bug of
 * ours.
 */
export function recordEvent(context: EventContext, event: NewEvent): Promise<string> {
  return storeEvent(context, event, null);
}

/** A reference to a stored event. */
export interface StoredEvent {
  readonly id: string;
  readonly sequence: number;
}

/**
 * Records an event like `recordEvent`, but for a single endpoint: it is not delivered to the others. The caller
 * creates the delivery.
 */
export async function recordEventForOne(context: EventContext, event: NewEvent): Promise<StoredEvent> {
  const id = await storeEvent(context, event, context.nowMs);
  return context.em
    .getKysely<Tables>()
    .selectFrom('outbox_events')
    .select(['id', 'sequence'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
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
  announceDelivery(context.em);
  noteEvent(context.em, { id, type, appId, resourceId });
  return id;
}

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

// Loaded with the first event: the validators are large, and many processes never record one.
const loadValidators = loadOnce(() => import('../../../generated/webhook-validators.js'));

async function assertKeepsContract(type: string, body: object): Promise<void> {
  const { webhookValidators } = await loadValidators();
  const validate = webhookValidators[type];
  assert(validate !== undefined, `the contract has no event \`${type}\``);
  const isValid = validate(body);
  const fault = validate.errors?.[0];
  assert(isValid, `event \`${type}\`${fault?.instancePath ?? ''}: ${fault?.message ?? 'invalid'}`);
}

/** The fields that identify an event's resource, the most specific first. */
const resourceFields = [
  'intent_id',
  'wallet_action_id',
  'transaction_id',
  'wallet_id',
  'user_id',
  'organization_id',
];

function resourceOf(body: object): string | null {
  const fields = new Map<string, unknown>(Object.entries(body));
  const user = fields.get('user') as { id?: unknown } | undefined;
  const ids = [...resourceFields.map((name) => fields.get(name)), user?.id];
  return (ids.find((id) => typeof id === 'string') as string | undefined) ?? null;
}
