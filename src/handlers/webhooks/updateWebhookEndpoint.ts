import { updateWebhookEndpoint as update } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const updateWebhookEndpoint: Handler<'updateWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookEndpointView(await update(context, path.endpoint_id, body));
