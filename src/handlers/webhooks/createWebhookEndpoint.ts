import { createWebhookEndpoint } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWebhookEndpoint'> = async ({ body }, context) => {
  const { endpoint, secret } = await createWebhookEndpoint(context, body);
  return { ...webhookEndpointView(endpoint), secret };
};
