import type { WebhookSender } from '../../ports/webhooks.ts';
import { inSpan } from '../../spans.ts';

/** Called for every attempt to deliver an event. */
type ObserveWebhook = (result: string, durationMs: number) => void;

/** A sender whose attempts are measured. The results are `delivered`, `refused` and the failures of the port. */
export function measuredWebhooks(sender: WebhookSender, observe: ObserveWebhook | undefined): WebhookSender {
  if (observe === undefined) return sender;
  return {
    ...sender,
    async send(request) {
      const span = { name: 'webhook', kind: 'client', isRoot: true } as const;
      const attributes = { 'custos.event': request.event.type };
      const outcome = await inSpan({ ...span, attributes }, () => sender.send(request));
      const { status, failure, durationMs } = outcome;
      const isDelivered = status !== undefined && status >= 200 && status < 300;
      observe(failure ?? (isDelivered ? 'delivered' : 'refused'), durationMs);
      return outcome;
    },
  };
}
