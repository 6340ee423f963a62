import { signWebhook } from '../../../crypto/webhook-signature.ts';
import type { Services } from '../../../operation-context.ts';
import type { DueDelivery } from './due-deliveries.ts';
import type { FinishedAttempt } from './record-attempts.ts';
import { ATTEMPT_TIMEOUT_MS } from './retry-schedule.ts';

/** A secret that signs deliveries. */
export interface SigningSecret {
  /** `whsec_` and base64. */
  readonly text: string;
  /** Null for the newest. */
  readonly expiresAtMs: number | null;
}

/** What all deliveries to an endpoint share. */
export interface Destination {
  readonly appId: string;
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
  /** Translates a stored payload to the brand of this server. */
  writePayload(payload: string): string;
}

/**
 * Sends an event to an endpoint, signed with every valid secret. Call it outside any transaction.
 *
 * CHOICE: the timestamp is the machine's time, not that of the server's clock, which is used for everything else.
 * Receivers refuse timestamps that are five minutes off, so all events of a server with a moved or frozen clock would
 * be refused.
 */
export async function attemptDelivery(
  { clock, webhooks }: Pick<Services, 'clock' | 'webhooks'>,
  delivery: DueDelivery,
  { appId, url, secrets, writePayload }: Destination,
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
    event: { type: delivery.eventType, appId },
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
