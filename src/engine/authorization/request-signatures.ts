import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/encoding.ts';
import { decodeCanonicalBase64, recoverP256PublicKeys, verifyP256 } from '../crypto/p256.ts';

/** The parts of a request that an authorization signature covers, with every URL that the client may have used. */
export interface RequestToSign {
  /** Upper case: `POST`, `PUT`, `PATCH`, `DELETE`. */
  readonly method: string;
  /** Every absolute URL that the client may have signed, most likely first. */
  readonly urls: readonly string[];
  /** The parsed JSON body; undefined if the request has none. */
  readonly body: unknown;
  /** The signed service headers under the names that the client sends: app id, idempotency key, request expiry. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The addresses at which a client may have sent a request. */
interface RequestAddress {
  /** Configured public base URLs, with or without a trailing slash. */
  readonly publicBaseUrls: readonly string[];
  /** `scheme://host[:port]` of the request; undefined if it has no host. */
  readonly origin: string | undefined;
  /** Path and query exactly as sent, including an `/api` prefix and `ext_wal_` ids. */
  readonly target: string;
}

/**
 * Returns the absolute URLs that a correct client may have signed: the path as sent under the request's own origin,
 * then under each public base URL, then the same URLs with the target decoded. Trailing slashes and duplicates are
 * removed.
 *
 * CHOICE: clients sign the URL as they write it, before or after their HTTP library encodes it. Both count.
 */
export function candidateUrls({ publicBaseUrls, origin, target }: RequestAddress): string[] {
  const bases = origin === undefined ? publicBaseUrls : [origin, ...publicBaseUrls];
  const decoded = decodedTarget(target);
  const targets = decoded === undefined ? [target] : [target, decoded];
  return [
    ...new Set(targets.flatMap((each) => bases.map((base) => withoutSlash(withoutSlash(base) + each)))),
  ];
}

// The encoded characters # % & + / = ?
const ENCODED_DELIMITER = /%(?=2[356BbFf]|3[DdFf])/g;

/**
 * Decodes percent-encoding. Returns undefined if nothing is encoded, or if the encoding is malformed.
 *
 * INVARIANT: encoded delimiters stay as they are, so a signature never counts for a request to another resource.
 */
function decodedTarget(target: string): string | undefined {
  if (!target.includes('%')) return undefined;
  try {
    return decodeURIComponent(target.replaceAll(ENCODED_DELIMITER, '%25'));
  } catch {
    return undefined;
  }
}

/**
 * Returns every payload that a correct client could have signed for this request, most likely first:
 * `{"body":…,"headers":{…},"method":…,"url":…,"version":1}`. Published clients encode an empty body in three ways:
 * `""`, no `body` member, and `{}`.
 *
 * @throws NotCanonicalizableError if the body has no canonical form.
 */
export function canonicalPayloadTexts({ method, urls, body, headers }: RequestToSign): string[] {
  // The body is serialized only once, however many URLs there are, because `body` sorts before every other member.
  const bodies = bodyVariants(body).map(({ body: variant }) =>
    variant === undefined ? '{' : `{"body":${canonicalJson(variant)},`,
  );
  return urls.flatMap((url) => {
    const rest = canonicalJson({ version: 1, method, url, headers }).slice(1);
    return bodies.map((start) => start + rest);
  });
}

/** Returns the payloads of `canonicalPayloadTexts` as the UTF-8 bytes that are hashed and signed. */
export function canonicalPayloads(request: RequestToSign): Uint8Array[] {
  const encoder = new TextEncoder();
  return canonicalPayloadTexts(request).map((text) => encoder.encode(text));
}

function bodyVariants(body: unknown): { body?: unknown }[] {
  return isEmptyBody(body) ? [{ body: '' }, {}, { body: {} }] : [{ body }];
}

function isEmptyBody(body: unknown): boolean {
  if (body === undefined || body === '') return true;
  return typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}

/** Thrown when the header contains more signatures than the server verifies. */
export class TooManySignaturesError extends Error {
  constructor(count: number) {
    super(`expected at most ${MAX_SIGNATURES} signatures, got ${count}`);
    this.name = 'TooManySignaturesError';
  }
}

// CHOICE: the specification states no limit. A header of 16 KiB, the maximum that servers accept, has room for about
// 170 signatures.
export const MAX_SIGNATURES = 100;

// Costs are counted in verifications of a short payload, which take about 0.15 ms of CPU time.
const RECOVERY_COST = 6;
// Hashing this many bytes takes as long as one verification.
const BYTES_PER_VERIFICATION = 128 * 1024;
// Parsing and serializing this many bytes takes as long as one verification.
const BYTES_WRITTEN_PER_VERIFICATION = 8 * 1024;

/** The result of verifying the signatures of one request. */
export interface VerifiedSignatures {
  /** Public keys for which a signature is valid. */
  readonly keys: ReadonlySet<string>;
  /** For each signature, the key for which it is valid. */
  readonly keyOfSignature: readonly (string | undefined)[];
  /** Indices of the payloads that the verified signatures cover. */
  readonly payloadIndices: ReadonlySet<number>;
}

/**
 * Splits the header `service-authorization-signature` at commas, trims spaces and drops empty items. Returns an empty
 * list for an absent header.
 *
 * @throws TooManySignaturesError
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

interface Search {
  readonly signatures: readonly string[];
  readonly payloads: readonly Uint8Array[];
  readonly keys: readonly string[];
  readonly isEnough?: (keys: ReadonlySet<string>) => boolean;
}

/**
 * Finds the key behind each signature. All signatures of one request usually cover the same payload, so the payload of
 * the first valid signature is tried first for the others.
 *
 * The generator yields the cost of serializing the payloads and then the cost of each signature, counted in
 * verifications, so that the caller can let other work run. Never throws: for a malformed signature, no key is found.
 *
 * INVARIANT: the cost of a signature does not depend on the number of keys. Each payload is hashed once, and once more
 * for each key that is found.
 *
 * @param search `signatures`: base64 of DER or of the 64 bytes `r || s`. `payloads`: the result of `canonicalPayloads`.
 * `keys`: canonical SubjectPublicKeyInfo, most likely first. `isEnough`: called after each signature; returning true
 * ends the search.
 */
export function* verifySignatures(search: Search): Generator<number, VerifiedSignatures> {
  const { signatures, payloads, isEnough = () => false } = search;
  const verified = new Set<string>();
  const keyOfSignature: (string | undefined)[] = signatures.map(() => undefined);
  const keys = new Set(search.keys);
  const digests = new Map<Uint8Array, Uint8Array>();
  const judged = new Map<string, Found | undefined>();
  let order = payloads.map((_, index) => index);
  const payloadIndices = new Set<number>();

  yield payloads.reduce((sum, { length }) => sum + length, 0) / BYTES_WRITTEN_PER_VERIFICATION;
  for (const [position, text] of signatures.entries()) {
    const signature = decodeCanonicalBase64(text);
    if (signature === undefined) continue;
    if (!judged.has(text)) {
      const { found, cost } = findKey(signature, { payloads, order, keys, verified, digests });
      judged.set(text, found);
      yield cost;
    }
    const found = judged.get(text);
    if (found !== undefined) {
      verified.add(found.key);
      keyOfSignature[position] = found.key;
      payloadIndices.add(found.payload);
      order = [found.payload, ...order.filter((index) => index !== found.payload)];
    }
    if (isEnough(verified)) break;
  }
  return { keys: verified, keyOfSignature, payloadIndices };
}

interface Found {
  readonly key: string;
  readonly payload: number;
}

interface Candidates {
  readonly payloads: readonly Uint8Array[];
  /** Indices of `payloads`, most likely first. */
  readonly order: readonly number[];
  readonly keys: ReadonlySet<string>;
  /** The subset of `keys` that has signed. */
  readonly verified: ReadonlySet<string>;
  /** The digests of payloads that were already hashed. */
  readonly digests: Map<Uint8Array, Uint8Array>;
}

/** Tries likely keys as long as that is cheaper than recovering the keys from the signature, and then recovers them. */
function findKey(signature: Uint8Array, candidates: Candidates): { found: Found | undefined; cost: number } {
  let cost = 0;
  for (const [payload, key] of pairs(candidates)) {
    const bytes = candidates.payloads[payload]!;
    cost += 1 + bytes.length / BYTES_PER_VERIFICATION;
    if (cost > RECOVERY_COST) return recoverKey(signature, candidates);
    if (verifyP256(key, bytes, signature)) return { found: { key, payload }, cost };
  }
  return { found: undefined, cost };
}

function recoverKey(
  signature: Uint8Array,
  { payloads, order, keys, digests }: Candidates,
): { found: Found | undefined; cost: number } {
  let cost = 2 * RECOVERY_COST;
  const keysOver = recoverP256PublicKeys(signature);
  if (keysOver === undefined) return { found: undefined, cost };
  for (const payload of order) {
    const bytes = payloads[payload]!;
    const known = digests.get(bytes);
    const digest = known ?? hash('sha256', bytes, 'buffer');
    digests.set(bytes, digest);
    cost += 1 + (known === undefined ? bytes.length / BYTES_PER_VERIFICATION : 0);
    const key = keysOver(digest).find((recovered) => keys.has(recovered));
    if (key === undefined) continue;
    cost += 1 + bytes.length / BYTES_PER_VERIFICATION;
    if (verifyP256(key, bytes, signature)) return { found: { key, payload }, cost };
  }
  return { found: undefined, cost };
}

function* pairs({ order, keys, verified }: Candidates): Generator<[number, string]> {
  for (const payload of order) {
    for (const key of keys) if (!verified.has(key)) yield [payload, key];
    // Keys that have already signed come last, because another signature by them would not add to the count.
    for (const key of verified) yield [payload, key];
  }
}
