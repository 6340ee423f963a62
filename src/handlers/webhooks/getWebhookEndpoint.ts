import { findWebhookEndpoint } from '../../domain/webhooks/find-webhook-endpoint.ts';
import { webhookEndpointView } from '../../domain/webhooks/webhook-endpoint-view.ts';
import type { Handler } from '../../services.ts';

export const getWebhookEndpoint: Handler<'getWebhookEndpoint'> = async ({ path }, context) =>
  webhookEndpointView(await findWebhookEndpoint(context, path.endpoint_id));
