import { testWebhookEndpoint, webhookDeliveryView } from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'testWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookDeliveryView(await testWebhookEndpoint(context, path.endpoint_id, body.payload));
