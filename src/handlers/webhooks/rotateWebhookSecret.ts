import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import { rotateWebhookSecret } from '../../domain/access/webhooks/webhook-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'rotateWebhookSecret'> = async ({ path, body }, context) => {
  const { endpoint, secret } = await rotateWebhookSecret(context, path.endpoint_id, body);
  return { ...webhookEndpointView(endpoint), secret };
};
