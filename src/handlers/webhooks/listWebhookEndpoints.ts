import { listWebhookEndpoints } from '../../domain/access/webhooks/find-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWebhookEndpoints'> = async ({ query }, context) => {
  const { endpoints, nextCursor } = await listWebhookEndpoints(context, query);
  return { data: endpoints.map(webhookEndpointView), next_cursor: nextCursor };
};
