import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { formatWebhookSecret, signWebhook, type WebhookHeaders } from '../crypto/webhook-signature.ts';
import type { SandboxEvent } from './event-feed.ts';

/** An event with the headers and the body that an endpoint gets. */
export interface SignedEvent {
  readonly headers: WebhookHeaders;
  readonly bodyText: string;
}

/** What became of a delivery: an answer, or why there was none. */
export interface Forwarded {
  readonly status?: number;
  readonly error?: string;
  /** How long it took, whole ms. */
  readonly durationMs: number;
}

const TIMEOUT_MS = 15_000;

/** A new secret of 32 bytes. */
export function drawWebhookSecret(): string {
  return formatWebhookSecret(systemEntropy.bytes(32));
}

/** Signs an event as of now by the machine's clock: receivers know no other, whatever the sandbox's clock shows. */
export function signEvent(event: SandboxEvent, secret: string): SignedEvent {
  const bodyText = JSON.stringify(event.payload);
  const timestampSeconds = Math.floor(systemClock.now() / 1000);
  return { bodyText, headers: signWebhook({ id: event.id, timestampSeconds, bodyText, secrets: [secret] }) };
}

/** Posts a signed event. Redirections are not followed; never rejects. */
export function forwardEvent(
  url: URL,
  { headers, bodyText }: SignedEvent,
  signal: AbortSignal,
): Promise<Forwarded> {
  const startedMs = performance.now();
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  return new Promise((resolve) => {
    const finish = (outcome: { status?: number; error?: string }): void =>
      resolve({ ...outcome, durationMs: Math.round(performance.now() - startedMs) });
    const sent = request(
      url,
      {
        method: 'POST',
        // A connection of its own: an endpoint that restarts leaves none behind that only looks open.
        agent: false,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(bodyText),
          'user-agent': 'custos-listen',
          ...headers,
        },
        signal: AbortSignal.any([signal, limit]),
      },
      (response) => {
        finish({ status: response.statusCode ?? 0 });
        // The status says it all; the rest is read so that the endpoint can finish, until the time is over.
        response.on('error', () => undefined).resume();
      },
    );
    sent.once('error', (error: NodeJS.ErrnoException) => finish({ error: reasonOf(error, signal, limit) }));
    sent.end(bodyText);
  });
}

function reasonOf(error: NodeJS.ErrnoException, stopped: AbortSignal, limit: AbortSignal): string {
  if (stopped.aborted) return 'stopped';
  if (limit.aborted) return `no answer within ${TIMEOUT_MS / 1000} s`;
  if (error.code === 'ECONNREFUSED') return 'connection refused';
  return error.message === '' ? (error.code ?? 'failed') : error.message;
}
