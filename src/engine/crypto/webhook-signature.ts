import { createHmac } from 'node:crypto';
import { base64ToBytes, bytesToBase64, InvalidEncodingError } from './encoding.ts';

/** Thrown when a webhook secret has the wrong format or length. The message never contains the secret. */
export class InvalidWebhookSecretError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'InvalidWebhookSecretError';
  }
}

const PREFIX = 'whsec_';
const leastBytes = 24;
const mostBytes = 64;

/**
 * The headers of one delivery. Each `svix-…` header repeats a `webhook-…` header for clients that expect the older
 * name.
 */
export interface WebhookHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
  readonly 'svix-id': string;
  readonly 'svix-timestamp': string;
  readonly 'svix-signature': string;
}

export interface WebhookToSign {
  /** The message id, which is the same for all attempts. Receivers use it to detect duplicates. Contains no dot. */
  readonly id: string;
  /** Unix seconds of this attempt. Receivers tolerate five minutes in either direction. */
  readonly timestampSeconds: number;
  /** The body exactly as it is sent. */
  readonly bodyText: string;
  /** At least one secret in the format of `parseWebhookSecret`; several while a rotated secret is still valid. */
  readonly secrets: readonly string[];
}

/**
 * Signs one delivery of a webhook.
 *
 * @returns the headers to send; `webhook-signature` has one signature for each secret, in order.
 * @throws InvalidWebhookSecretError; RangeError for an invalid id or timestamp, or without a secret.
 * @see Standard Webhooks, "Signature scheme" (symmetric, v1).
 */
export function signWebhook({ id, timestampSeconds, bodyText, secrets }: WebhookToSign): WebhookHeaders {
  // A dot in the id would make the signed text ambiguous, because dots separate id, timestamp and body.
  if (!/^[\x21-\x2d\x2f-\x7e]+$/.test(id))
    throw new RangeError(`expected a webhook id in printable ASCII without dots, got \`${id}\``);
  if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 0) {
    throw new RangeError(`expected a webhook timestamp in whole seconds, got \`${timestampSeconds}\``);
  }
  if (secrets.length === 0) throw new RangeError('expected at least one webhook secret, got none');
  const timestamp = String(timestampSeconds);
  // v1,base64(HMAC-SHA-256(secret, id || "." || timestamp || "." || body))
  const message = `${id}.${timestamp}.${bodyText}`;
  const signature = secrets
    .map((secret) => {
      const digest = createHmac('sha256', parseWebhookSecret(secret)).update(message, 'utf8').digest();
      return `v1,${bytesToBase64(digest)}`;
    })
    .join(' ');
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
    'svix-id': id,
    'svix-timestamp': timestamp,
    'svix-signature': signature,
  };
}

/**
 * Formats a webhook secret: `whsec_` followed by base64.
 *
 * @param bytes 24 to 64 random bytes.
 * @throws InvalidWebhookSecretError for any other length.
 */
export function formatWebhookSecret(bytes: Uint8Array): string {
  checkLength(bytes.length);
  return PREFIX + bytesToBase64(bytes);
}

/**
 * Decodes a webhook secret into its HMAC key: `whsec_` followed by the base64 of 24 to 64 bytes. The prefix is
 * optional.
 *
 * @throws InvalidWebhookSecretError
 */
export function parseWebhookSecret(secret: string): Uint8Array {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  try {
    const bytes = base64ToBytes(text);
    checkLength(bytes.length);
    return bytes;
  } catch (cause) {
    if (!(cause instanceof InvalidEncodingError)) throw cause;
    throw new InvalidWebhookSecretError(`expected \`${PREFIX}\` followed by padded standard base64`, {
      cause,
    });
  }
}

function checkLength(length: number): void {
  if (length >= leastBytes && length <= mostBytes) return;
  throw new InvalidWebhookSecretError(
    `expected a secret of ${leastBytes} to ${mostBytes} bytes, got ${length} bytes`,
  );
}
