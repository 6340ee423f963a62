import { findWebhookEndpoint } from '../../domain/access/webhooks/find-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/access/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWebhookEndpoint'> = async ({ path }, context) =>
  webhookEndpointView(await findWebhookEndpoint(context, path.endpoint_id));
