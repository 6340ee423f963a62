import { ApiError } from '../../../errors.ts';
import type {
  CreateWebhookEndpointRequest,
  UpdateWebhookEndpointRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import { newestSequence } from '../../base/events/list-events.ts';
import { announceDelivery } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { checkEventTypes, checkUrl, EVERY_TYPE } from './check-webhook-endpoint.ts';
import { type EndpointRow, findWebhookEndpointForUpdate } from './find-webhook-endpoint.ts';
import { createWebhookSecret } from './webhook-secrets.ts';

/** CHOICE: every event is stored once for each endpoint that asks for it. */
const MAX_ENDPOINTS = 20;

/**
 * Makes an endpoint, which is given the events that are recorded from now on, and its first secret.
 *
 * @throws ApiError invalid_data for an address or an event type that cannot be; invalid_request when the app has too
 * many endpoints.
 */
export async function createWebhookEndpoint(
  context: OperationContext,
  { url, description, event_types }: CreateWebhookEndpointRequest,
): Promise<{ endpoint: EndpointRow; secret: string }> {
  checkUrl(context, url);
  const eventTypes = await checkEventTypes(event_types ?? [EVERY_TYPE]);
  await requireRoom(context);
  const endpoint: EndpointRow = {
    id: context.ids.cuid2(),
    app_id: context.app.id,
    url,
    description: description ?? null,
    event_types: JSON.stringify(eventTypes),
    status: 'enabled',
    disabled_reason: null,
    after_sequence: await newestSequence(context.em),
    failing_since_ms: null,
    failing_day_count: 0,
    last_failing_day: 0,
    next_due_at_ms: null,
    lease_owner: null,
    leased_until_ms: null,
    created_at_ms: context.nowMs,
    updated_at_ms: context.nowMs,
  };
  await context.em.getKysely<Tables>().insertInto('webhook_endpoints').values(endpoint).execute();
  return { endpoint, secret: await createWebhookSecret(context, endpoint.id) };
}

/** Makes others who count the app's endpoints wait until the transaction ends. */
async function requireRoom(context: OperationContext): Promise<void> {
  await lockName(context.em, `webhook_endpoints:${context.app.id}`);
  const { count } = await context.em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('app_id', '=', context.app.id)
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_ENDPOINTS) {
    throw new ApiError('invalid_request', `An app has at most ${MAX_ENDPOINTS} webhook endpoints.`);
  }
}

/**
 * Changes what is given of an endpoint.
 *
 * CHOICE: an endpoint that is enabled again is sent what waited for it; its five days begin anew.
 *
 * @throws ApiError not_found; invalid_data for an address or an event type that cannot be.
 */
export async function updateWebhookEndpoint(
  context: OperationContext,
  id: string,
  { url, description, event_types, status }: UpdateWebhookEndpointRequest,
): Promise<EndpointRow> {
  if (url !== undefined) checkUrl(context, url);
  const eventTypes = event_types === undefined ? undefined : await checkEventTypes(event_types);
  const endpoint = await findWebhookEndpointForUpdate(context, id);
  const isSwitched = status !== undefined && status !== endpoint.status;
  const changes = {
    updated_at_ms: context.nowMs,
    ...(url !== undefined && { url }),
    ...(description !== undefined && { description }),
    ...(eventTypes !== undefined && { event_types: JSON.stringify(eventTypes) }),
    ...(isSwitched && {
      status,
      disabled_reason: status === 'enabled' ? null : 'requested',
      failing_since_ms: null,
      failing_day_count: 0,
      last_failing_day: 0,
    }),
    ...(isSwitched && status === 'enabled' && { after_sequence: await newestSequence(context.em) }),
  };
  await context.em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set(changes)
    .where('id', '=', endpoint.id)
    .execute();
  // What waited may be due, and whoever sends to it is to know where.
  if (isSwitched || url !== undefined) announceDelivery(context.em);
  return { ...endpoint, ...changes };
}

/**
 * Deletes an endpoint with its secrets and deliveries.
 *
 * @throws ApiError not_found
 */
export async function deleteWebhookEndpoint(context: OperationContext, id: string): Promise<void> {
  const endpoint = await findWebhookEndpointForUpdate(context, id);
  const database = context.em.getKysely<Tables>();
  await database.deleteFrom('webhook_deliveries').where('endpoint_id', '=', endpoint.id).execute();
  await database.deleteFrom('webhook_secrets').where('endpoint_id', '=', endpoint.id).execute();
  await database.deleteFrom('webhook_endpoints').where('id', '=', endpoint.id).execute();
  // Whoever sends to it is to stop.
  announceDelivery(context.em);
}
