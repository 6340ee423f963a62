import { deleteWebhookEndpoint as remove } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteWebhookEndpoint: Handler<'deleteWebhookEndpoint'> = async ({ path }, context) => {
  await remove(context, path.endpoint_id);
  return { success: true };
};
