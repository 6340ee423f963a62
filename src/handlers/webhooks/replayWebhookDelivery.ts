import {
  replayWebhookDelivery as replay,
  webhookDeliveryView,
} from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const replayWebhookDelivery: Handler<'replayWebhookDelivery'> = async ({ path }, context) =>
  webhookDeliveryView(await replay(context, path.endpoint_id, path.delivery_id));
