import { ApiError } from '../../../errors.ts';
import type {
  CreateWebhookEndpointRequest,
  UpdateWebhookEndpointRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import { newestSequence } from '../../base/events/list-events.ts';
import { announceDelivery } from '../../base/events/record-event.ts';
import { checkEventTypes, checkUrl, EVERY_TYPE } from './check-webhook-endpoint.ts';
import { findWebhookEndpointForUpdate } from './find-webhook-endpoint.ts';
import { WebhookDeliveryEntity } from './webhook-delivery.entity.ts';
import { type StoredWebhookEndpoint, WebhookEndpointEntity } from './webhook-endpoint.entity.ts';
import { WebhookSecretEntity } from './webhook-secret.entity.ts';
import { createWebhookSecret } from './webhook-secrets.ts';

/** CHOICE: limited, because every event is stored once per subscribed endpoint. */
const MAX_ENDPOINTS = 20;

/**
 * Creates an endpoint with its first secret. It receives the events that are recorded from now on.
 *
 * @throws ApiError invalid_data for an invalid URL or event type; invalid_request when the app has too many
 * endpoints.
 */
export async function createWebhookEndpoint(
  context: OperationContext,
  { url, description, event_types }: CreateWebhookEndpointRequest,
): Promise<{ endpoint: StoredWebhookEndpoint; secret: string }> {
  checkUrl(context, url);
  const eventTypes = await checkEventTypes(event_types ?? [EVERY_TYPE]);
  await requireBelowLimit(context);
  const endpoint = context.em.create(WebhookEndpointEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    url,
    description: description ?? null,
    eventTypes,
    status: 'enabled',
    disabledReason: null,
    afterSequence: await newestSequence(context.em),
    failingSinceMs: null,
    failingDayCount: 0,
    lastFailingDay: 0,
    nextDueAtMs: null,
    leaseOwner: null,
    leasedUntilMs: null,
    createdAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  });
  return { endpoint, secret: await createWebhookSecret(context, endpoint.id) };
}

/** Serializes concurrent creations in one app, so that the limit holds. */
async function requireBelowLimit(context: OperationContext): Promise<void> {
  await lockName(context.em, 'webhook endpoints', `webhook_endpoints:${context.app.id}`);
  const count = await context.em.count(WebhookEndpointEntity, { appId: context.app.id });
  if (count >= MAX_ENDPOINTS) {
    throw new ApiError('invalid_request', `an app can have at most ${MAX_ENDPOINTS} webhook endpoints`);
  }
}

/**
 * Updates the given fields of an endpoint.
 *
 * CHOICE: an endpoint that is enabled again receives its pending deliveries; its five days start over.
 *
 * @throws ApiError not_found; invalid_data for an invalid URL or event type.
 */
export async function updateWebhookEndpoint(
  context: OperationContext,
  id: string,
  { url, description, event_types, status }: UpdateWebhookEndpointRequest,
): Promise<StoredWebhookEndpoint> {
  if (url !== undefined) checkUrl(context, url);
  const eventTypes = event_types === undefined ? undefined : await checkEventTypes(event_types);
  const endpoint = await findWebhookEndpointForUpdate(context, id);
  const isSwitched = status !== undefined && status !== endpoint.status;
  endpoint.updatedAtMs = context.nowMs;
  endpoint.url = url ?? endpoint.url;
  endpoint.description = description === undefined ? endpoint.description : description;
  endpoint.eventTypes = eventTypes ?? endpoint.eventTypes;
  if (isSwitched) {
    endpoint.status = status;
    endpoint.disabledReason = status === 'enabled' ? null : 'requested';
    endpoint.failingSinceMs = null;
    endpoint.failingDayCount = 0;
    endpoint.lastFailingDay = 0;
    if (status === 'enabled') endpoint.afterSequence = await newestSequence(context.em);
  }
  await context.em.flush();
  // Pending deliveries may be due, and a running worker must read the new URL.
  if (isSwitched || url !== undefined) announceDelivery(context.em);
  return endpoint;
}

/**
 * Deletes an endpoint with its secrets and deliveries.
 *
 * @throws ApiError not_found
 */
export async function deleteWebhookEndpoint(context: OperationContext, id: string): Promise<void> {
  const endpoint = await findWebhookEndpointForUpdate(context, id);
  await context.em.nativeDelete(WebhookDeliveryEntity, { endpointId: endpoint.id });
  await context.em.nativeDelete(WebhookSecretEntity, { endpointId: endpoint.id });
  await context.em.remove(endpoint).flush();
  // A running worker must stop.
  announceDelivery(context.em);
}
