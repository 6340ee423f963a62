import {
  listWebhookDeliveries as list,
  webhookDeliveryView,
} from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const listWebhookDeliveries: Handler<'listWebhookDeliveries'> = async ({ path, query }, context) => {
  const { deliveries, nextCursor } = await list(context, path.endpoint_id, query);
  return { data: deliveries.map(webhookDeliveryView), next_cursor: nextCursor };
};
