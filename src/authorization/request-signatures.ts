import { decodeCanonicalBase64, verifyP256 } from '../crypto/p256.ts';

/** The header contains more signatures than the server verifies. */
export class TooManySignaturesError extends Error {
  constructor(count: number) {
    super(`expected at most ${MAX_SIGNATURES} signatures, got ${count}`);
    this.name = 'TooManySignaturesError';
  }
}

// CHOICE: the specification states no limit. A header of 16 KiB, the maximum that servers accept, fits about 170
// signatures.
export const MAX_SIGNATURES = 100;

// CHOICE: bounds signatures × payloads × keys of one request to half a second of CPU time. 30 signatures under 60 keys
// in the worst order need half of it.
const MAX_VERIFICATIONS = 4_000;

/** The outcome of verifying the signatures of one request. */
export interface VerifiedSignatures {
  /** Public keys under which a signature verified. */
  readonly keys: ReadonlySet<string>;
  /** For each signature, the key under which it verified. */
  readonly keyOfSignature: readonly (string | undefined)[];
  /** Index of the payload that the verified signatures cover; undefined when none verified. */
  readonly payloadIndex: number | undefined;
  /** Whether verification stopped at the limit of verifications. */
  readonly exhausted: boolean;
}

/**
 * Splits the header `service-authorization-signature` at commas; trims spaces and drops empty items.
 * Returns an empty list for an absent header. Throws `TooManySignaturesError`.
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
 * Finds the key behind each signature. All signatures of one request cover the same payload, so the payload of the
 * first verified signature is tried first for the others.
 *
 * Shape: `signatures` base64 of DER or of the 64 bytes `r || s`; `payloads` the candidates of `canonicalPayloads`;
 * `keys` canonical SubjectPublicKeyInfo, most likely first; `isEnough` is called after each signature and stops the
 * search when it returns true. Never throws: a malformed signature verifies under no key.
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
    // Keys that already signed come last: another signature of theirs would not add to the count.
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
