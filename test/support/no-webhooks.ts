import type { WebhookSender } from '../../src/ports/webhooks.ts';

/** Takes every address and reaches none. */
export const noWebhooks: WebhookSender = {
  realNow: () => 0,
  objectionTo: () => undefined,
  send: async () => ({ status: undefined, failure: 'connection_failed', durationMs: 0 }),
  close: async () => undefined,
};
