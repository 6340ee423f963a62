import { createWebhookEndpoint as create } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const createWebhookEndpoint: Handler<'createWebhookEndpoint'> = async ({ body }, context) => {
  const { endpoint, secret } = await create(context, body);
  return { ...webhookEndpointView(endpoint), secret };
};
