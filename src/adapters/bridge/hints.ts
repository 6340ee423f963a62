import { createHash, type KeyObject, verify } from 'node:crypto';
import type { FiatHint, FiatNotification } from '../../ports/fiat-providers.ts';

/** CHOICE: a notification is believed for as long as the provider advises. */
const MAX_AGE_MS = 600_000;
/** The provider's clock may be ahead of ours. */
const MAX_AHEAD_MS = 60_000;

const HEADER = /^t=(\d{1,15}),v0=([A-Za-z0-9+/]+={0,2})$/;

/**
 * What a webhook of the provider refers to; undefined unless `X-Webhook-Signature: t=<ms>,v0=<base64>` is an RSA
 * signature of it. Nothing else of the notification is believed.
 */
export function readBridgeHint(
  publicKey: KeyObject,
  { headers, body, nowMs }: FiatNotification,
): readonly FiatHint[] | undefined {
  const [, time, signature] = HEADER.exec(headers['x-webhook-signature'] ?? '') ?? [];
  if (time === undefined || signature === undefined) return undefined;
  const age = nowMs - Number(time);
  if (age > MAX_AGE_MS || age < -MAX_AHEAD_MS) return undefined;
  // NOTE: what is signed with RSA-SHA-256 is the SHA-256 digest of `<time>.<body>`, so the text is hashed twice.
  const digest = createHash('sha256').update(`${time}.`, 'utf8').update(body).digest();
  if (!verify('sha256', digest, publicKey, Buffer.from(signature, 'base64'))) return undefined;
  return hintsIn(body);
}

const kinds: Readonly<Record<string, FiatHint['kind']>> = {
  customer: 'customer',
  kyc_link: 'customer',
  virtual_account_activity: 'virtual_account',
  'virtual_account.activity': 'virtual_account',
  transfer: 'payout',
};

function hintsIn(body: Uint8Array): readonly FiatHint[] {
  const event = parse(body);
  if (event === undefined) return [];
  const { event_category: category, event_object_id: objectId, event_object: object } = event;
  const kind = kinds[String(category)];
  if (kind === undefined) return [];
  const { customer_id: customerId, virtual_account_id: accountId } = (object ?? {}) as Record<
    string,
    unknown
  >;
  const named = kind === 'virtual_account' ? accountId : category === 'kyc_link' ? customerId : objectId;
  return typeof named === 'string' ? [{ kind, id: named }] : [];
}

function parse(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
