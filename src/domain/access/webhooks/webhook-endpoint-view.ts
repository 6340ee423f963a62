import type { WebhookEndpoint } from '../../../generated/schemas.ts';
import type { StoredWebhookEndpoint } from './webhook-endpoint.entity.ts';

/** An endpoint in wire form, without its secret. */
export function webhookEndpointView(endpoint: StoredWebhookEndpoint): WebhookEndpoint {
  return {
    id: endpoint.id,
    url: endpoint.url,
    description: endpoint.description,
    event_types: endpoint.eventTypes,
    status: endpoint.status as WebhookEndpoint['status'],
    disabled_reason: endpoint.disabledReason as WebhookEndpoint['disabled_reason'],
    created_at: endpoint.createdAtMs,
    updated_at: endpoint.updatedAtMs,
  };
}
