import { decodeCanonicalBase64, verifyP256 } from '../crypto/p256.ts';

/** The header holds more signatures than one request may carry. */
export class TooManySignaturesError extends Error {
  constructor(count: number) {
    super(`the header holds ${count} signatures; at most ${MAX_SIGNATURES} are read`);
    this.name = 'TooManySignaturesError';
  }
}

// CHOICE: no limit is published. A header of 16 KiB, the most that servers read, holds about 170 signatures.
export const MAX_SIGNATURES = 100;

// CHOICE: bounds the work of one request, signatures times payloads times keys, to half a second. Half of it serves
// 30 signatures for 60 keys in the worst order.
const MAX_VERIFICATIONS = 4_000;

/** What verification found out, apart from what it means for any quorum. */
export interface VerifiedSignatures {
  /** Public keys under which a signature verified. */
  readonly keys: ReadonlySet<string>;
  /** For each signature, the key under which it verified. */
  readonly keyOfSignature: readonly (string | undefined)[];
  /** Index of the payload that the verified signatures cover; undefined when none verified. */
  readonly payloadIndex: number | undefined;
  /** Verification stopped early because the request asked for too much of it. */
  readonly exhausted: boolean;
}

/**
 * Splits the header `service-authorization-signature`: items joined by commas, spaces trimmed, empty items dropped.
 * An absent or empty header is no signature at all. Throws `TooManySignaturesError`.
 */
export function parseSignatureHeader(header: string | undefined): string[] {
  if (header === undefined) return [];
  const signatures = header
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (signatures.length > MAX_SIGNATURES) throw new TooManySignaturesError(signatures.length);
  return signatures;
}

/**
 * Finds the key behind each signature. All signatures of one request cover the same text, so the payload that fits
 * the first verified one is tried first for the others.
 *
 * Shape: `signatures` base64 of DER or of the 64 bytes `r || s`; `payloads` the candidates of `canonicalPayloads`;
 * `keys` canonical SubjectPublicKeyInfo, the likeliest first; `isEnough` is asked after each success and ends the
 * search. Result: never throws; a malformed signature is one that verifies under no key.
 */
export function verifySignatures({
  signatures,
  payloads,
  keys,
  isEnough = () => false,
}: {
  readonly signatures: readonly string[];
  readonly payloads: readonly Uint8Array[];
  readonly keys: readonly string[];
  readonly isEnough?: (keys: ReadonlySet<string>) => boolean;
}): VerifiedSignatures {
  const verified = new Set<string>();
  const keyOfSignature: (string | undefined)[] = signatures.map(() => undefined);
  const distinctKeys = [...new Set(keys)];
  let order = payloads.map((_, index) => index);
  let payloadIndex: number | undefined;
  let remaining = MAX_VERIFICATIONS;

  for (const [position, text] of signatures.entries()) {
    const signature = decodeCanonicalBase64(text);
    if (signature === undefined) continue;
    // A key that already signed is tried last: it can only turn out to have signed twice.
    const candidates = [...distinctKeys.filter((key) => !verified.has(key)), ...verified];
    for (const [payload, key] of pairs(order, candidates)) {
      if (remaining-- === 0) return { keys: verified, keyOfSignature, payloadIndex, exhausted: true };
      const bytes = payloads[payload];
      if (bytes === undefined || !verifyP256(key, bytes, signature)) continue;
      verified.add(key);
      keyOfSignature[position] = key;
      payloadIndex = payload;
      order = [payload, ...order.filter((index) => index !== payload)];
      break;
    }
    if (isEnough(verified)) break;
  }
  return { keys: verified, keyOfSignature, payloadIndex, exhausted: false };
}

function* pairs(payloads: readonly number[], keys: readonly string[]): Generator<[number, string]> {
  for (const payload of payloads) {
    for (const key of keys) yield [payload, key];
  }
}
