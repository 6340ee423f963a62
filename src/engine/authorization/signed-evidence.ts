import { LRUCache } from 'lru-cache';
import { inSlices } from '../in-slices.ts';
import { countQuorum, type Quorum, quorumKeys } from './quorum.ts';
import { verifySignatures } from './request-signatures.ts';

/** The signatures that authorize a request, with the canonical payloads that they cover. */
export interface Evidence {
  /** One entry for a direct request, or one per signature of an intent. */
  readonly requests: readonly SignedPayload[];
}

export interface SignedPayload {
  /** The payload that was signed, as `canonicalPayloadTexts` writes it. */
  readonly payload: string;
  /** Base64. */
  readonly signatures: readonly string[];
}

export interface SignedRequestContent {
  readonly method: string;
  /** The path from `/v1/` on: without origin, the path of a public base URL, `/api`, query and trailing slash. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The value of the header `…-app-id`. */
  readonly appId: string;
  /** Unix ms; undefined if the payload contains no expiry. */
  readonly expiryMs: number | undefined;
}

/** Thrown when the evidence does not authorize the requested use of a key or the requested change. */
export class UnauthorizedUseError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnauthorizedUseError';
  }
}

/** The maximum number of signed payloads. An intent has one for each member who has signed it. */
const MAX_REQUESTS = 200;
/** The maximum number of signatures: as many as a key quorum can have members. */
const MAX_SIGNATURES = 600;

/**
 * Reads the request from the evidence. All payloads must be of the same request, except that their origins may
 * differ, because a server can have several names.
 *
 * NOTE: this verifies no signature. The caller counts signatures with `isSignedBy`.
 */
export function readEvidence({ requests }: Evidence): SignedRequestContent {
  const [first, ...others] = requests.slice(0, MAX_REQUESTS).map(({ payload }) => payload);
  if (first === undefined || requests.length > MAX_REQUESTS) {
    throw new UnauthorizedUseError(`expected 1 to ${MAX_REQUESTS} signed requests, got ${requests.length}`);
  }
  const count = requests.reduce((sum, { signatures }) => sum + signatures.length, 0);
  if (count > MAX_SIGNATURES) {
    throw new UnauthorizedUseError(`expected at most ${MAX_SIGNATURES} signatures, got ${count}`);
  }
  const request = readPayload(first);
  const differing = others.filter((other) => other !== first);
  if (differing.length === 0) return request;
  const text = JSON.stringify(request);
  if (differing.some((other) => JSON.stringify(readPayload(other)) !== text)) {
    throw new UnauthorizedUseError('expected signatures of one request, got signatures of several requests');
  }
  return request;
}

/** CHOICE: the time after its expiry during which a request may still be signed. */
const GRACE_MS = 60_000;

/**
 * Returns the time at which the signer evaluates a policy. It is the time at which the caller evaluated it, so that
 * both get the same result at the end of a period. A time in the future, or longer ago than a request may wait, is
 * clamped.
 */
export function evaluationTimeOf(claimedMs: number | undefined, nowMs: number): number {
  return typeof claimedMs === 'number' ? Math.min(nowMs, Math.max(claimedMs, nowMs - GRACE_MS)) : nowMs;
}

/**
 * Requires that the request belongs to this app and has not expired.
 *
 * @throws UnauthorizedUseError
 */
export function requireOccasion(
  { appId, expiryMs }: SignedRequestContent,
  occasion: { readonly appId: string; readonly nowMs: number },
): void {
  if (appId !== occasion.appId) throw new UnauthorizedUseError('the request was signed for a different app');
  // If the header is not a number, `expiryMs` is NaN and this comparison is false.
  if (expiryMs !== undefined && !(expiryMs + GRACE_MS >= occasion.nowMs)) {
    throw new UnauthorizedUseError('the signed request has expired');
  }
}

// The public keys that last signed for a key quorum. They are tried first, because trying a wrong key costs as much as
// trying the right one, and the same keys usually sign again.
const recentSigners = new LRUCache<string, ReadonlySet<string>>({ max: 10_000 });

/**
 * Returns whether the evidence has enough valid signatures of the quorum's members. Signatures beyond the threshold
 * are not verified. Other work can run between two verifications.
 *
 * INVARIANT: earlier signers only determine the order in which keys are tried.
 */
export async function isSignedBy(quorum: Quorum, { requests }: Evidence): Promise<boolean> {
  const keys = quorumKeys(quorum);
  const eligible = new Set(keys);
  const recent = [...(recentSigners.get(quorum.id) ?? [])].filter((key) => eligible.has(key));
  const signed = new Set<string>();
  const isEnough = (more: ReadonlySet<string>): boolean =>
    countQuorum(quorum, new Set([...signed, ...more])).satisfied;
  for (const { payload, signatures } of requests) {
    const payloads = [new TextEncoder().encode(payload)];
    const search = verifySignatures({ signatures, payloads, keys: [...recent, ...keys], isEnough });
    for (const key of (await inSlices(search)).keys) signed.add(key);
    if (isEnough(signed)) break;
  }
  if (signed.size > 0) recentSigners.set(quorum.id, signed);
  return isEnough(signed);
}

function readPayload(payload: string): SignedRequestContent {
  const { version, method, url, headers, body } = JSON.parse(payload) as Record<string, unknown>;
  if (version !== 1 || typeof method !== 'string' || typeof url !== 'string') {
    throw new UnauthorizedUseError('expected a canonical payload of version 1');
  }
  const signed = Object.entries((headers ?? {}) as Record<string, string>);
  const header = (suffix: string) => signed.find(([name]) => name.endsWith(suffix))?.[1];
  const expiry = header('-request-expiry');
  return {
    method,
    path: plainPath(url)
      .replace(/^.*(?=\/v1\/)/, '')
      .replace(/\/$/, ''),
    body: typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {},
    appId: header('-app-id') ?? '',
    expiryMs: expiry === undefined ? undefined : Number(expiry),
  };
}

/**
 * Returns the path of a URL with letters and digits decoded, however the client has encoded them (RFC 3986 §6.2.2.2).
 */
function plainPath(url: string): string {
  return new URL(url).pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[0-9a-z._~-]/i.test(character) ? character : encoded;
  });
}
