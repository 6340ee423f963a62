import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SentSeal } from './quorum-records.ts';

/** The key store's statement that it generated this key for the user of a login token. */
export interface Voucher {
  /** JSON of the `VoucherContent`. */
  readonly content: string;
  /** HMAC-SHA-256 of `content` under the app's voucher key, in hex. */
  readonly tag: string;
}

export interface VoucherContent {
  readonly appId: string;
  /** The user's id in the app's login, as the token states it. */
  readonly subject: string;
  /** Canonical base64 SubjectPublicKeyInfo. */
  readonly publicKey: string;
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/** Lets the key store recognize the users of a key quorum. */
export interface PinnedUsers {
  /** The name of the voucher key. Vouchers under other keys are ignored. */
  readonly voucher: string;
  /** Maps each user id to the user's id in the app's login. */
  readonly subjects: Readonly<Record<string, string>>;
}

/** The app's voucher key as it is stored, sealed. */
export interface StoredVoucherKey {
  readonly id: string;
  readonly seal: SentSeal;
}

/** Reads a voucher under the voucher key with this name. Returns undefined for an invalid voucher. */
export type ReadVoucher = (voucher: Voucher, name: string) => VoucherContent | undefined;

export function makeVoucher(secret: Uint8Array, content: VoucherContent): Voucher {
  const text = JSON.stringify(content);
  return { content: text, tag: tagOf(secret, text).toString('hex') };
}

/**
 * Returns a function that reads an app's vouchers with the secret of the voucher key.
 *
 * NOTE: each voucher is verified only once, because every pinned user of a key quorum looks through all of them.
 */
export function voucherReader(
  secret: Uint8Array,
  known: { readonly name: string; readonly appId: string },
): ReadVoucher {
  const verified = new Map<Voucher, VoucherContent | undefined>();
  const verify = ({ content, tag }: Voucher): VoucherContent | undefined => {
    const [given, expected] = [Buffer.from(String(tag), 'hex'), tagOf(secret, String(content))];
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const read = JSON.parse(content) as VoucherContent;
    return read.appId === known.appId ? read : undefined;
  };
  return (voucher, name) => {
    if (name !== known.name) return undefined;
    if (!verified.has(voucher)) verified.set(voucher, verify(voucher));
    return verified.get(voucher);
  };
}

// The prefix keeps these tags apart from other HMACs under the same key.
function tagOf(secret: Uint8Array, content: string): Buffer {
  return createHmac('sha256', secret).update(`custos user key\n${content}`, 'utf8').digest();
}

/**
 * Reads the user's id in an app's login from a claim of its token. Returns undefined for an unusable value.
 *
 * CHOICE: a number counts as its decimal digits if it is a safe integer. JavaScript rounds larger numbers, so the ids
 * of two users could become the same.
 */
export function userIdIn(claim: unknown): string | undefined {
  if (typeof claim === 'number') return Number.isSafeInteger(claim) ? String(claim) : undefined;
  return typeof claim === 'string' && claim !== '' ? claim : undefined;
}
