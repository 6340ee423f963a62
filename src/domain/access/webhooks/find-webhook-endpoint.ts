import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { type StoredWebhookEndpoint, WebhookEndpointEntity } from './webhook-endpoint.entity.ts';

export type WebhookContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * A webhook endpoint of the app.
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
 * A webhook endpoint of the app, locked until the transaction ends.
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

/** @throws ApiError invalid_state for a disabled endpoint. */
export function requireEnabled(endpoint: StoredWebhookEndpoint): void {
  if (endpoint.status === 'enabled') return;
  throw new ApiError('invalid_state', 'the webhook endpoint is disabled; enable it first');
}

/**
 * One page of the app's webhook endpoints, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no endpoint.
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
