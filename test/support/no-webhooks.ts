import type { WebhookSender } from '../../src/ports/webhooks.ts';

/** A sender that accepts every address and reaches none. */
export const noWebhooks: WebhookSender = {
  systemNow: () => 0,
  urlFault: () => undefined,
  send: async () => ({ status: undefined, failure: 'connection_failed', durationMs: 0 }),
  close: async () => undefined,
};
