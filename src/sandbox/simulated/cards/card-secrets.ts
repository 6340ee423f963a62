import { createHmac, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { HpkeError, hpkeRecipientFromSeed, openHpke } from '../../../engine/crypto/hpke.ts';
import type { CardParts } from './parts.ts';

/**
 * Every secret of a card is derived from the issuer's secret when it is needed: number = prefix || digits of
 * HMAC-SHA256(secret, "number" || card) || Luhn digit. The security code and the keys are derived in the same way.
 */

/** The secret details of a card, which a page shows with an ephemeral key. */
export interface CardDetails {
  readonly number: string;
  readonly cvc: string;
  readonly expMonth: number;
  readonly expYear: number;
}

type Secrets = Pick<CardParts, 'environment' | 'secret'>;

const PREFIX = '40000099900';
const SERIAL_DIGITS = 4;
const POINT_BYTES = 65;
const KEY_PREFIX = 'ek_test_';
/** CHOICE: how long an ephemeral key is valid. */
const KEY_MS = 15 * 60_000;

export function numberOf(parts: Secrets, cardId: string): string {
  const body = PREFIX + digitsOf(parts, `number ${cardId}`, SERIAL_DIGITS);
  return body + luhnDigit(body);
}

export function securityCodeOf(parts: Secrets, cardId: string): string {
  return digitsOf(parts, `code ${cardId}`, 3);
}

/** Caches the keys by the MACs from which they are derived. */
const publishableKeys = new LRUCache<string, string>({ max: 100 });

/** Returns the key with which pages encrypt PINs: `pk_test_` and a P-256 point. Every order of a card needs it. */
export async function publishableKey(parts: Secrets): Promise<string> {
  const name = macOf(parts, 'publishable key').toString('base64');
  const known = publishableKeys.get(name);
  if (known !== undefined) return known;
  const { publicKeyBytes } = await pinKey(parts);
  const made = `pk_test_${Buffer.from(publicKeyBytes).toString('base64url')}`;
  publishableKeys.set(name, made);
  return made;
}

/** Decrypts a PIN and returns its keyed hash; undefined unless the PIN has 4 to 12 digits (ISO 9564-1). */
export async function readPin(
  parts: Secrets,
  cardId: string,
  encrypted: string,
): Promise<string | undefined> {
  const bytes = Buffer.from(encrypted, 'base64');
  const { privateKeyBytes } = await pinKey(parts);
  try {
    const pin = await openHpke({
      recipientPrivateKeyBytes: privateKeyBytes,
      encapsulatedKey: bytes.subarray(0, POINT_BYTES),
      ciphertext: bytes.subarray(POINT_BYTES),
    });
    const text = Buffer.from(pin).toString('latin1');
    return /^\d{4,12}$/.test(text) ? pinMac(parts, cardId, text) : undefined;
  } catch (error) {
    if (error instanceof HpkeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

export function pinMac(parts: Secrets, cardId: string, pin: string): string {
  return macOf(parts, `pin ${cardId} ${pin}`).toString('base64');
}

/**
 * Creates an ephemeral key of a card for the page with this nonce. The key need not be stored, because it contains a
 * MAC by which it can be verified.
 */
export function makeEphemeralKey(
  parts: Secrets,
  { cardId, nonce, nowMs }: { cardId: string; nonce: string; nowMs: number },
): string {
  const terms = Buffer.from(JSON.stringify([cardId, nowMs + KEY_MS])).toString('base64url');
  return `${KEY_PREFIX}${terms}.${keyMac(parts, terms, nonce).toString('base64url')}`;
}

/** Returns the card of an ephemeral key, or undefined if the key is wrong, expired, or was made for another page. */
export function cardOfKey(
  parts: Secrets,
  { key, nonce, nowMs }: { key: string; nonce: string; nowMs: number },
): string | undefined {
  const [terms = '', mac = ''] = key.startsWith(KEY_PREFIX) ? key.slice(KEY_PREFIX.length).split('.') : [];
  const [given, expected] = [Buffer.from(mac, 'base64url'), keyMac(parts, terms, nonce)];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const [cardId, expiresMs] = JSON.parse(Buffer.from(terms, 'base64url').toString()) as [string, number];
  return nowMs < expiresMs ? cardId : undefined;
}

function keyMac(parts: Secrets, terms: string, nonce: string): Buffer {
  return macOf(parts, `key ${terms} ${nonce}`);
}

function pinKey(parts: Secrets) {
  return hpkeRecipientFromSeed(macOf(parts, 'pin key'));
}

function digitsOf(parts: Secrets, text: string, count: number): string {
  return (macOf(parts, text).readBigUInt64BE() % 10n ** BigInt(count)).toString().padStart(count, '0');
}

function macOf({ environment, secret }: Secrets, text: string): Buffer {
  return createHmac('sha256', secret).update(`${environment} ${text}`).digest();
}

/**
 * Returns the check digit of ISO/IEC 7812-1: every second digit from the right is doubled, and the sum including the
 * check digit must end in 0.
 */
function luhnDigit(body: string): string {
  const sum = [...body].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return String((10 - (sum % 10)) % 10);
}
