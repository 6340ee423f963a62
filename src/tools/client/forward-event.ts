import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { temporaryCertificateFolder } from '../../adapters/certificate.ts';
import { systemClock, systemEntropy } from '../../adapters/runtime.ts';
import {
  formatWebhookSecret,
  parseWebhookSecret,
  signWebhook,
  type WebhookHeaders,
} from '../../engine/crypto/webhook-signature.ts';
import type { SandboxEvent } from './feeds.ts';

/** A webhook delivery: its headers and its body. */
export interface SignedEvent {
  readonly headers: WebhookHeaders;
  readonly bodyText: string;
}

/** The result of a delivery: a status, or the reason why there was no response. */
export interface Forwarded {
  readonly status?: number;
  readonly error?: string;
  readonly durationMs: number;
}

const TIMEOUT_MS = 15_000;

/**
 * Signs an event with the current system time. Receivers compare this time with their own clock, not with the
 * sandbox's clock.
 */
export function signEvent(event: SandboxEvent, secret: string): SignedEvent {
  const bodyText = JSON.stringify(event.payload);
  const timestampSeconds = Math.floor(systemClock.now() / 1000);
  return { bodyText, headers: signWebhook({ id: event.id, timestampSeconds, bodyText, secrets: [secret] }) };
}

/** Posts a signed event without following redirects. Never rejects. */
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
        // Each event uses a new connection, because a restarted endpoint would leave stale keep-alive connections
        // behind.
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
        // Only the status matters. The body is read to its end so that the endpoint can finish its response.
        response.on('error', () => undefined).resume();
      },
    );
    sent.once('error', (error: NodeJS.ErrnoException) => finish({ error: reasonOf(error, signal, limit) }));
    sent.end(bodyText);
  });
}

function reasonOf(error: NodeJS.ErrnoException, stopped: AbortSignal, limit: AbortSignal): string {
  if (stopped.aborted) return 'stopped';
  if (limit.aborted) return `no response within ${TIMEOUT_MS / 1000} s`;
  if (error.code === 'ECONNREFUSED') return 'connection refused';
  return error.message === '' ? (error.code ?? 'failed') : error.message;
}

/**
 * Returns the secret with which `custos listen` signs. It stays the same, so that endpoints need to be configured
 * only once. It is stored in the sandbox's data folder if there is one, else in a folder of this user.
 */
export function listenSecret(data: string | undefined): string {
  const file = join(data ?? temporaryCertificateFolder(), 'listen-secret.txt');
  const stored = readSecret(file);
  if (stored !== undefined) return stored;
  const created = formatWebhookSecret(systemEntropy.bytes(32));
  try {
    writeFileSync(file, `${created}\n`, { mode: 0o600, flag: 'wx' });
    return created;
  } catch {
    // Another process has just written the file, or the folder is read-only.
    return readSecret(file) ?? created;
  }
}

/** Reads the secret in a file. Returns undefined if there is none. */
function readSecret(file: string): string | undefined {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    parseWebhookSecret(secret);
    return secret;
  } catch {
    return undefined;
  }
}
