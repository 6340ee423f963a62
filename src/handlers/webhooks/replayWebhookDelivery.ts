import {
  replayWebhookDelivery,
  webhookDeliveryView,
} from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'replayWebhookDelivery'> = async ({ path }, context) =>
  webhookDeliveryView(await replayWebhookDelivery(context, path.endpoint_id, path.delivery_id));
