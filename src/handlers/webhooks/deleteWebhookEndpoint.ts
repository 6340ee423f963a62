import { deleteWebhookEndpoint } from '../../domain/access/webhooks/change-webhook-endpoint.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteWebhookEndpoint'> = async ({ path }, context) => {
  await deleteWebhookEndpoint(context, path.endpoint_id);
  return { success: true };
};
