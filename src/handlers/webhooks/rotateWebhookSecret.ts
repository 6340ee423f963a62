import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import { rotateWebhookSecret as rotate } from '../../domain/access/webhooks/webhook-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const rotateWebhookSecret: Handler<'rotateWebhookSecret'> = async ({ path, body }, context) => {
  const { endpoint, secret } = await rotate(context, path.endpoint_id, body);
  return { ...webhookEndpointView(endpoint), secret };
};
