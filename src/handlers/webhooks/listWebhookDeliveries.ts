import {
  listWebhookDeliveries,
  webhookDeliveryView,
} from '../../domain/access/webhooks/webhook-deliveries.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWebhookDeliveries'> = async ({ path, query }, context) => {
  const { deliveries, nextCursor } = await listWebhookDeliveries(context, path.endpoint_id, query);
  return { data: deliveries.map(webhookDeliveryView), next_cursor: nextCursor };
};
