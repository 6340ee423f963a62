import {
  listWebhookDeliveries as listWebhookDeliveriesVerb,
  replayWebhookDelivery as replayWebhookDeliveryVerb,
  testWebhookEndpoint as testWebhookEndpointVerb,
  webhookDeliveryView,
} from '../domain/access/webhooks/webhook-deliveries.ts';
import {
  createWebhookEndpoint as createWebhookEndpointVerb,
  deleteWebhookEndpoint as deleteWebhookEndpointVerb,
  findWebhookEndpoint,
  listWebhookEndpoints as listWebhookEndpointsVerb,
  rotateWebhookSecret as rotateWebhookSecretVerb,
  updateWebhookEndpoint as updateWebhookEndpointVerb,
  webhookEndpointView,
} from '../domain/access/webhooks/webhook-endpoint.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listWebhookEndpoints: Handler<'listWebhookEndpoints'> = async ({ query }, context) => {
  const { endpoints, nextCursor } = await listWebhookEndpointsVerb(context, query);
  return { data: endpoints.map(webhookEndpointView), next_cursor: nextCursor };
};

export const createWebhookEndpoint: Handler<'createWebhookEndpoint'> = async ({ body }, context) => {
  const { endpoint, secret } = await createWebhookEndpointVerb(context, body);
  return { ...webhookEndpointView(endpoint), secret };
};

export const deleteWebhookEndpoint: Handler<'deleteWebhookEndpoint'> = async ({ path }, context) => {
  await deleteWebhookEndpointVerb(context, path.endpoint_id);
  return { success: true };
};

export const getWebhookEndpoint: Handler<'getWebhookEndpoint'> = async ({ path }, context) =>
  webhookEndpointView(await findWebhookEndpoint(context, path.endpoint_id));

export const updateWebhookEndpoint: Handler<'updateWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookEndpointView(await updateWebhookEndpointVerb(context, path.endpoint_id, body));

export const rotateWebhookSecret: Handler<'rotateWebhookSecret'> = async ({ path, body }, context) => {
  const { endpoint, secret } = await rotateWebhookSecretVerb(context, path.endpoint_id, body);
  return { ...webhookEndpointView(endpoint), secret };
};

export const testWebhookEndpoint: Handler<'testWebhookEndpoint'> = async ({ path, body }, context) =>
  webhookDeliveryView(await testWebhookEndpointVerb(context, path.endpoint_id, body.payload));

export const listWebhookDeliveries: Handler<'listWebhookDeliveries'> = async ({ path, query }, context) => {
  const { deliveries, nextCursor } = await listWebhookDeliveriesVerb(context, path.endpoint_id, query);
  return { data: deliveries.map(webhookDeliveryView), next_cursor: nextCursor };
};

export const replayWebhookDelivery: Handler<'replayWebhookDelivery'> = async ({ path }, context) =>
  webhookDeliveryView(await replayWebhookDeliveryVerb(context, path.endpoint_id, path.delivery_id));
