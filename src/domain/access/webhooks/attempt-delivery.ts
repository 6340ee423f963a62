import { signWebhook } from '../../../crypto/webhook-signature.ts';
import type { Services } from '../../../operation-context.ts';
import type { DueDelivery } from './due-deliveries.ts';
import type { FinishedAttempt } from './record-attempts.ts';
import { ATTEMPT_TIMEOUT_MS } from './retry-schedule.ts';

/** A secret to sign with. */
export interface SigningSecret {
  /** `whsec_` and base64. */
  readonly text: string;
  /** Null for the newest. */
  readonly expiresAtMs: number | null;
}

/** What is the same for every delivery to an endpoint. */
export interface Destination {
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
  /** The stored body in the words that clients of this server know. */
  writePayload(payload: string): string;
}

/**
 * Sends an event to an endpoint, signed by every secret that is valid; outside any transaction.
 *
 * CHOICE: the timestamp is the machine's time, not the server's clock, on which everything else here goes by: receivers
 * refuse what is five minutes off, so that events of a server whose clock was moved or stopped would all be refused.
 */
export async function attemptDelivery(
  { clock, webhooks }: Pick<Services, 'clock' | 'webhooks'>,
  delivery: DueDelivery,
  { url, secrets, writePayload }: Destination,
): Promise<FinishedAttempt> {
  const startedMs = clock.now();
  const bodyText = writePayload(delivery.payload);
  const valid = secrets.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > startedMs);
  const headers = signWebhook({
    id: delivery.eventId,
    timestampSeconds: Math.floor(webhooks.systemNow() / 1000),
    bodyText,
    secrets: valid.map(({ text }) => text),
  });
  const outcome = await webhooks.send({
    url,
    headers: { ...headers },
    bodyText,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
  });
  const { status = null, failure = null, durationMs } = outcome;
  return {
    delivery,
    attempt: { attempted_at: startedMs, duration_ms: durationMs, response_status: status, error: failure },
    isDelivered: status !== null && status >= 200 && status < 300,
    nowMs: clock.now(),
  };
}
