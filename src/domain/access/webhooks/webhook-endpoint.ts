import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { formatWebhookSecret } from '../../../engine/crypto/webhook-signature.ts';
import { ApiError, invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type {
  CreateWebhookEndpointRequest,
  RotateWebhookSecretRequest,
  UpdateWebhookEndpointRequest,
  WebhookEndpoint,
} from '../../../generated/schemas.ts';
import type { KeyStore } from '../../../ports/key-store.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate, lockName } from '../../../storage/locks.ts';
import { announceDelivery, newestSequence } from '../../base/events/events.ts';
import { webhookSecretBinding } from '../../base/sealed-keys/sealed-keys.ts';
import type { Tables } from '../../tables.ts';
import {
  type StoredWebhookEndpoint,
  WebhookDeliveryEntity,
  WebhookEndpointEntity,
  WebhookSecretEntity,
} from './webhook.entity.ts';

/** The entry of `event_types` that subscribes to every type. */
const EVERY_TYPE = '*';

/** The type of a test event. The tested endpoint receives it, whatever its event types are. */
export const TEST_TYPE = 'service.test';

/**
 * Checks that events may be sent to a URL. Only the text of the URL is checked here; for every request, the host is
 * resolved and checked again.
 *
 * @throws ApiError invalid_data
 */
function checkUrl({ webhooks }: Pick<OperationContext, 'webhooks'>, url: string): void {
  const fault = webhooks.urlFault(url);
  if (fault !== undefined) throw invalidField('/url', fault);
}

/**
 * Checks the event types of a request, and returns them without duplicates. If `*` is among them, returns only `*`.
 *
 * @throws ApiError invalid_data for a type that is not in the API document.
 */
async function checkEventTypes(types: readonly string[]): Promise<string[]> {
  const { webhookValidators } = await import('../../../generated/webhook-validators.js');
  for (const [index, type] of types.entries()) {
    const isKnown = type !== TEST_TYPE && Object.hasOwn(webhookValidators, type);
    if (isKnown || type === EVERY_TYPE) continue;
    throw invalidField(
      `/event_types/${index}`,
      `expected an event type or \`*\`, got ${JSON.stringify(type)}`,
    );
  }
  return types.includes(EVERY_TYPE) ? [EVERY_TYPE] : [...new Set(types)];
}

/** Returns whether an endpoint that subscribes to `types` receives events of `type`. */
export function isSubscribedTo(type: string, types: readonly string[]): boolean {
  return types.includes(EVERY_TYPE) || types.includes(type);
}

export type WebhookContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * Finds a webhook endpoint of the app.
 *
 * @throws ApiError not_found
 */
export async function findWebhookEndpoint(
  context: WebhookContext,
  id: string,
): Promise<StoredWebhookEndpoint> {
  const endpoint = await getWebhookEndpoint(context, id);
  if (endpoint === undefined) throw notFound('Webhook endpoint');
  return endpoint;
}

/**
 * Finds a webhook endpoint of the app and locks it until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findWebhookEndpointForUpdate(
  { app, em }: WebhookContext,
  id: string,
): Promise<StoredWebhookEndpoint> {
  const endpoint = isEndpointId(id)
    ? await em.findOne(WebhookEndpointEntity, { id, appId: app.id }, lockForUpdate)
    : null;
  if (endpoint === null) throw notFound('Webhook endpoint');
  return endpoint;
}

/**
 * Refuses to send to an endpoint that is disabled.
 *
 * @throws ApiError invalid_state
 */
export function requireEnabled(endpoint: StoredWebhookEndpoint): void {
  if (endpoint.status === 'enabled') return;
  throw new ApiError('invalid_state', 'the webhook endpoint is disabled; enable it first');
}

/**
 * Lists one page of the app's webhook endpoints, newest first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not an endpoint of the app.
 */
export async function listWebhookEndpoints(
  context: WebhookContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ endpoints: StoredWebhookEndpoint[]; nextCursor: string | null }> {
  const after = cursor === undefined ? undefined : await getWebhookEndpoint(context, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  }
  const { page, nextCursor } = await findPage(
    context.em,
    WebhookEndpointEntity,
    { appId: context.app.id },
    { after, limit },
  );
  return { endpoints: page, nextCursor };
}

async function getWebhookEndpoint(
  { app, em }: WebhookContext,
  id: string,
): Promise<StoredWebhookEndpoint | undefined> {
  if (!isEndpointId(id)) return undefined;
  return (await em.findOne(WebhookEndpointEntity, { id, appId: app.id })) ?? undefined;
}

function isEndpointId(id: string): boolean {
  return /^[a-z0-9]{1,64}$/.test(id);
}

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

/** A row of `webhook_secrets` with the column names of the database. */
export type SecretRow = Selectable<Tables['webhook_secrets']>;

const columns = [
  'id',
  'endpoint_id',
  'app_id',
  'sealed_secret',
  'wrapped_data_key',
  'master_key_id',
  'created_at_ms',
  'expires_at_ms',
] as const satisfies readonly (keyof SecretRow)[];

const SECRET_BYTES = 32;
const DEFAULT_OVERLAP_SECONDS = 86_400;
/** CHOICE: the number of valid secrets is limited, because each adds a signature to every request. */
const MAX_SECRETS = 5;

/**
 * Creates, seals and stores a new secret of an endpoint. Returns the secret itself, which appears only in the response.
 */
async function createWebhookSecret(context: OperationContext, endpointId: string): Promise<string> {
  const secretBytes = context.entropy.bytes(SECRET_BYTES);
  const id = context.ids.cuid2();
  try {
    const sealed = await context.keyStore.seal(
      secretBytes,
      webhookSecretBinding({ id, app_id: context.app.id }),
    );
    context.em.create(WebhookSecretEntity, {
      id,
      endpointId,
      appId: context.app.id,
      sealedSecret: Buffer.from(sealed.sealedSecret),
      wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
      masterKeyId: sealed.masterKeyId,
      createdAtMs: context.nowMs,
      expiresAtMs: null,
    });
    await context.em.flush();
    return formatWebhookSecret(secretBytes);
  } finally {
    secretBytes.fill(0);
  }
}

/**
 * Creates a new secret for an endpoint. During the overlap, earlier secrets also sign.
 *
 * CHOICE: the default overlap is one day. With an overlap of 0, earlier secrets stop signing immediately.
 *
 * @throws ApiError not_found; invalid_state when too many secrets are valid at the same time.
 */
export async function rotateWebhookSecret(
  context: OperationContext,
  endpointId: string,
  { overlap_seconds: overlapSeconds = DEFAULT_OVERLAP_SECONDS }: RotateWebhookSecretRequest,
): Promise<{ endpoint: StoredWebhookEndpoint; secret: string }> {
  const endpoint = await findWebhookEndpointForUpdate(context, endpointId);
  const untilMs = context.nowMs + overlapSeconds * 1000;
  const earlier = await context.em.find(WebhookSecretEntity, { endpointId: endpoint.id });
  for (const secret of earlier) secret.expiresAtMs = Math.min(secret.expiresAtMs ?? untilMs, untilMs);
  const expired = earlier.filter(({ expiresAtMs }) => expiresAtMs! <= context.nowMs);
  for (const secret of expired) context.em.remove(secret);
  if (earlier.length - expired.length >= MAX_SECRETS) {
    throw new ApiError(
      'invalid_state',
      `${MAX_SECRETS} secrets of the endpoint are valid; wait for one to expire or rotate with an overlap of 0`,
    );
  }
  endpoint.updatedAtMs = context.nowMs;
  const secret = await createWebhookSecret(context, endpoint.id);
  // Wake the worker of the endpoint, which must sign with the new secret.
  announceDelivery(context.notes);
  return { endpoint, secret };
}

/** Reads the valid secrets of an endpoint, oldest first. */
export function readWebhookSecrets(
  em: SqlEntityManager,
  endpointId: string,
  nowMs: number,
): Promise<SecretRow[]> {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_secrets')
    .select(columns)
    .where('endpoint_id', '=', endpointId)
    .where(({ or, eb }) => or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', nowMs)]))
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute();
}

export async function openWebhookSecret(keyStore: KeyStore, row: SecretRow): Promise<string> {
  const sealed = {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
  return formatWebhookSecret(await keyStore.open(sealed, webhookSecretBinding(row)));
}

/** CHOICE: the number of endpoints is limited, because every event is stored once per subscribed endpoint. */
const MAX_ENDPOINTS = 20;

/**
 * Creates an endpoint with its first secret. It receives only events that are recorded after its creation.
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

/**
 * Locks the app's endpoints against concurrent creations, and refuses an endpoint beyond the limit.
 *
 * @throws ApiError invalid_request
 */
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
 * CHOICE: when an endpoint is enabled again, its pending deliveries are sent. The five days of failures after which it
 * is disabled start over.
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
  // Pending deliveries may be due, and the worker of the endpoint must read the new URL.
  if (isSwitched || url !== undefined) announceDelivery(context.notes);
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
  // Wake the worker, which must stop serving the deleted endpoint.
  announceDelivery(context.notes);
}

/** Converts an endpoint to wire form, without its secret. */
export function webhookEndpointView(endpoint: StoredWebhookEndpoint): WebhookEndpoint {
  return {
    id: endpoint.id,
    url: endpoint.url,
    description: endpoint.description,
    event_types: endpoint.eventTypes,
    status: endpoint.status as WebhookEndpoint['status'],
    disabled_reason: endpoint.disabledReason as WebhookEndpoint['disabled_reason'],
    created_at: endpoint.createdAtMs,
    updated_at: endpoint.updatedAtMs,
  };
}
