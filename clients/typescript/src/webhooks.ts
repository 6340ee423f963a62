import { Webhook, WebhookVerificationError } from 'standardwebhooks';

export { WebhookVerificationError };

/** An event that a signature proves. Drop those whose `id` you have seen: an event can arrive more than once. */
export interface VerifiedEvent {
  readonly id: string;
  readonly type: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** The headers of a request of Node.js, or those of `fetch`. */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | string[] | undefined>>;

/**
 * Verifies the body as it arrived: text that was parsed and written again has another signature.
 *
 * @throws `WebhookVerificationError` if the event is not genuine, or the secret is empty or malformed
 */
export function verifyWebhook(secret: string, headers: WebhookHeaders, body: string): VerifiedEvent {
  const entries =
    Symbol.iterator in headers
      ? [...(headers as Iterable<readonly [string, string]>)]
      : Object.entries(headers);
  const sent = entries.filter(([, value]) => value !== undefined);
  const lower = Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), String(value)]));
  let event: { type?: unknown } | undefined;
  try {
    event = new Webhook(secret?.trim()).verify(body, lower) as typeof event;
  } catch (error) {
    throw error instanceof WebhookVerificationError
      ? error
      : new WebhookVerificationError((error as Error).message);
  }
  if (typeof event?.type !== 'string') throw new WebhookVerificationError('the body is not an event');
  return { id: lower['webhook-id'] as string, type: event.type, event: { ...event } };
}
