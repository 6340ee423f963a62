import type { DelayDelivery, SelectableEvent } from '../../ports/fault-injection.ts';
import type { WebhookRequest, WebhookSender } from '../../ports/webhooks.ts';
import type { SandboxFaultEffect } from '../generated/schemas.ts';
import type { FaultRule, FaultRules, Selection } from './fault-rules.ts';

const deliveryEffects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'webhook_delay',
  'webhook_reorder',
]);
const attemptEffects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'webhook_duplicate',
  'webhook_bad_signature',
]);

/** Finds the rule that delays a new delivery. */
export function delayByRules(rules: FaultRules): DelayDelivery {
  return (event) => {
    const hit = rules.draw(deliveryEffects, selecting(event));
    return hit && { delayMs: hit.delayMs, keepsOrder: hit.rule.effect === 'webhook_delay' };
  };
}

/** A sender whose attempts are sent twice, or with a bad signature, where a rule says so. */
export function withAttemptFaults(sender: WebhookSender, rules: FaultRules): WebhookSender {
  return {
    ...sender,
    async send(request) {
      const { event, bodyText: payload } = request;
      const hit = rules.draw(attemptEffects, selecting({ ...event, payload }));
      if (hit === undefined) return sender.send(request);
      if (hit.rule.effect === 'webhook_bad_signature') return sender.send(withBadSignature(request));
      // At once, so that both together take no longer than the lease of the endpoint.
      const [outcome] = await Promise.all([sender.send(request), sender.send(request)]);
      return outcome;
    },
  };
}

function selecting({ type, appId, payload }: SelectableEvent) {
  return (rule: FaultRule, { eventType, walletId }: Selection): boolean => {
    if (eventType !== undefined && eventType !== type) return false;
    if (rule.app_id !== null && rule.app_id !== appId) return false;
    return rule.wallet_id === null || payload.includes(`"${walletId}"`);
  };
}

/** The signatures of another body: as long as the right ones, with every bit of their first byte inverted. */
function withBadSignature(request: WebhookRequest): WebhookRequest {
  const names = ['webhook-signature', 'svix-signature'];
  const headers = Object.entries(request.headers).map(([name, value]) => [
    name,
    names.includes(name) ? value.split(' ').map(invert).join(' ') : value,
  ]);
  return { ...request, headers: Object.fromEntries(headers) };
}

/** `v1,<base64>`. */
function invert(signature: string): string {
  const [version = '', text = ''] = signature.split(',');
  const bytes = Buffer.from(text, 'base64');
  bytes[0] = (bytes[0] ?? 0) ^ 0xff;
  return `${version},${bytes.toString('base64')}`;
}
