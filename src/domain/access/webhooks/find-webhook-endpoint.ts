import type { Selectable } from 'kysely';
import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { olderThan } from '../../../storage/keyset-cursor.ts';
import type { Tables } from '../../tables.ts';

export type WebhookContext = Pick<OperationContext, 'app' | 'em'>;

/** A row of `webhook_endpoints`, columns as they are stored. */
export type EndpointRow = Selectable<Tables['webhook_endpoints']>;

const MAX_PAGE = 100;

/**
 * A webhook endpoint of the app.
 *
 * @throws ApiError not_found
 */
export async function findWebhookEndpoint(context: WebhookContext, id: string): Promise<EndpointRow> {
  const row = await selectEndpoint(context, id)?.executeTakeFirst();
  if (row === undefined) throw notFound('Webhook endpoint');
  return row;
}

/**
 * A webhook endpoint of the app that is about to change or to get a delivery, held until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findWebhookEndpointForUpdate(
  context: WebhookContext,
  id: string,
): Promise<EndpointRow> {
  const row = await selectEndpoint(context, id)?.forUpdate().executeTakeFirst();
  if (row === undefined) throw notFound('Webhook endpoint');
  return row;
}

/** @throws ApiError invalid_state for an endpoint that nothing is sent to. */
export function requireEnabled(endpoint: EndpointRow): void {
  if (endpoint.status === 'enabled') return;
  throw new ApiError('invalid_state', 'The webhook endpoint is disabled; enable it first.');
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
): Promise<{ endpoints: EndpointRow[]; nextCursor: string | null }> {
  const last = cursor === undefined ? undefined : await selectEndpoint(context, cursor)?.executeTakeFirst();
  if (cursor !== undefined && last === undefined) {
    throw invalidQuery('cursor', 'expected the `next_cursor` of a page before');
  }
  const query = context.em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('app_id', '=', context.app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    // One more than asked for tells whether another page follows.
    .limit(limit + 1);
  const rows = await (last === undefined
    ? query
    : query.where(olderThan(last.created_at_ms, last.id))
  ).execute();
  const endpoints = rows.slice(0, limit);
  return { endpoints, nextCursor: rows.length > limit ? (endpoints.at(-1)?.id ?? null) : null };
}

/** Undefined when the id cannot be one of an endpoint. */
function selectEndpoint({ app, em }: WebhookContext, id: string) {
  if (!/^[a-z0-9]{1,64}$/.test(id)) return undefined;
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('id', '=', id)
    .where('app_id', '=', app.id);
}
