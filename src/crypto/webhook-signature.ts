import { createHmac } from 'node:crypto';
import { base64ToBytes, bytesToBase64, InvalidEncodingError } from './encoding.ts';

/** A webhook secret that cannot be used. The message says what was expected and never shows the secret. */
export class InvalidWebhookSecretError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'InvalidWebhookSecretError';
  }
}

const PREFIX = 'whsec_';
const leastBytes = 24;
const mostBytes = 64;

/** The headers of one delivery; each `svix-…` is the alias of the one above for clients that know the older names. */
export interface WebhookHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
  readonly 'svix-id': string;
  readonly 'svix-timestamp': string;
  readonly 'svix-signature': string;
}

/** What is signed, and with what. */
export interface WebhookToSign {
  /** The message's id, the same at every try: receivers recognise duplicates by it. No dot. */
  readonly id: string;
  /** Unix seconds of this try, whole. Receivers allow five minutes either side. */
  readonly timestampSeconds: number;
  /** The body exactly as it is sent. */
  readonly bodyText: string;
  /** At least one, as `parseWebhookSecret` takes them; several while an old one is still valid. */
  readonly secrets: readonly string[];
}

/**
 * Signs one delivery of a webhook.
 *
 * @returns the headers to send; `webhook-signature` holds one signature for each secret, in order.
 * @throws InvalidWebhookSecretError; RangeError for an id, a time or a list of secrets that nobody could verify.
 * @see Standard Webhooks, "Signature scheme" (symmetric, v1).
 */
export function signWebhook({ id, timestampSeconds, bodyText, secrets }: WebhookToSign): WebhookHeaders {
  // A dot would let one message's id and time be read as another's.
  if (!/^[\x21-\x2d\x2f-\x7e]+$/.test(id))
    throw new RangeError('a webhook id is printable ASCII without dots');
  if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 0) {
    throw new RangeError(`a webhook timestamp is in whole seconds, got ${timestampSeconds}`);
  }
  if (secrets.length === 0) throw new RangeError('a webhook is signed with at least one secret');
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
 * A webhook secret as text.
 *
 * @param bytes 24 to 64 random bytes.
 * @throws InvalidWebhookSecretError for any other length.
 */
export function formatWebhookSecret(bytes: Uint8Array): string {
  checkLength(bytes.length);
  return PREFIX + bytesToBase64(bytes);
}

/**
 * The key of a webhook secret: `whsec_` and the base64 of 24 to 64 bytes; the prefix may be left out.
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
    throw new InvalidWebhookSecretError(`expected \`${PREFIX}\` and padded standard base64`, { cause });
  }
}

function checkLength(length: number): void {
  if (length >= leastBytes && length <= mostBytes) return;
  throw new InvalidWebhookSecretError(
    `expected a secret of ${leastBytes} to ${mostBytes} bytes, got ${length} bytes`,
  );
}
