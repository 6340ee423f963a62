import {
  testWebhookEndpoint as test,
  webhookDeliveryView,
} from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const testWebhookEndpoint: Handler<'testWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookDeliveryView(await test(context, path.endpoint_id, body.payload));
