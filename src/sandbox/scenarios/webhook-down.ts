import { passTimeTo } from '../pass-time.ts';
import type { Scenario } from './scenarios.ts';

/** The discard port, on which nothing listens. */
const URL = 'http://127.0.0.1:9/hook';
const DAY_MS = 24 * 3_600_000;
const DAYS = 5;

export const webhookDown: Scenario = {
  name: 'webhook-down-5-days',
  summary: 'An endpoint that fails every day for five days is disabled. Advances the clock.',
  async play(stage) {
    const { context } = stage;
    const endpoint = await stage.create('webhook_endpoint', 'An endpoint at a closed port', {
      operation: 'createWebhookEndpoint',
      body: { url: URL },
    });
    const path = { endpoint_id: endpoint };
    for (let day = 0; day <= DAYS; day += 1) {
      if (day > 0) {
        await passTimeTo(context.clock.now() + DAY_MS, context);
        await context.finishJobs();
      }
      await stage.call(`Day ${day}: a test event`, { operation: 'testWebhookEndpoint', path, body: {} });
      await context.finishJobs();
    }
    await stage.call('The endpoint is disabled', { operation: 'getWebhookEndpoint', path });
    return [
      `custos call listWebhookDeliveries ${endpoint}`,
      `custos call updateWebhookEndpoint ${endpoint} status=enabled`,
    ];
  },
};
