import { Webhook } from 'standardwebhooks';

/** An event that a signature proves. Drop those whose `id` you have seen: an event can arrive more than once. */
export interface VerifiedEvent {
  readonly id: string;
  readonly type: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/**
 * Verifies the body as it arrived: text that was parsed and written again has another signature.
 *
 * @throws `WebhookVerificationError` of `standardwebhooks`
 */
export function verifyWebhook(
  secret: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
): VerifiedEvent {
  const lower = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
  const event = new Webhook(secret).verify(body, lower) as { type: string };
  return { id: lower['webhook-id'] as string, type: event.type, event };
}
