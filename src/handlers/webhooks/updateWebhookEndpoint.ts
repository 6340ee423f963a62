import { updateWebhookEndpoint } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookEndpointView(await updateWebhookEndpoint(context, path.endpoint_id, body));
