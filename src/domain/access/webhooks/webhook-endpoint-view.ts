import type { WebhookEndpoint } from '../../../generated/schemas.ts';
import type { EndpointRow } from './find-webhook-endpoint.ts';

/** An endpoint as the wire has it, without its secret. */
export function webhookEndpointView(row: EndpointRow): WebhookEndpoint {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    event_types: JSON.parse(row.event_types) as string[],
    status: row.status as WebhookEndpoint['status'],
    disabled_reason: row.disabled_reason as WebhookEndpoint['disabled_reason'],
    created_at: row.created_at_ms,
    updated_at: row.updated_at_ms,
  };
}
