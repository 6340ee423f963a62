import { LRUCache } from 'lru-cache';
import { inSlices } from '../in-slices.ts';
import { countQuorum, type Quorum, quorumKeys } from './quorum.ts';
import { verifySignatures } from './request-signatures.ts';

/** The signatures that authorized a request, with the canonical payloads that they cover. */
export interface Evidence {
  /** One entry of a direct request; one for each signature of an intent. */
  readonly requests: readonly SignedPayload[];
}

export interface SignedPayload {
  /** The text of `canonicalPayloadTexts` that was signed. */
  readonly payload: string;
  /** Base64. */
  readonly signatures: readonly string[];
}

/** The signed request. */
export interface EvidentRequest {
  readonly method: string;
  /** From `/v1/` on: without origin, the path of a public base URL, `/api`, query and trailing slash. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Value of the header `…-app-id`. */
  readonly appId: string;
  /** Unix ms; undefined when none was signed. */
  readonly expiryMs: number | undefined;
}

/** The evidence does not authorize what it is presented for. */
export class UnauthorizedUseError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnauthorizedUseError';
  }
}

/** The maximum of distinct signed requests, larger than the number of members of an intent. */
const MAX_REQUESTS = 200;
/** As many as a key quorum has members. */
const MAX_SIGNATURES = 600;

/**
 * The request that the evidence is of. All its payloads must be of the same one; their origins may differ, because a
 * server has several names.
 *
 * NOTE: nothing is verified here: a caller counts the signatures with `isSignedBy`.
 */
export function readEvidence({ requests }: Evidence): EvidentRequest {
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

/** CHOICE: how long after its expiry a request may still be waiting for its signature. */
const GRACE_MS = 60_000;

/**
 * The time by which a policy is evaluated: the one by which the caller has evaluated it, so that both decide the same at
 * the end of a time that a policy allows. It is not later than now, and not longer ago than a request may wait.
 */
export function judgedAt(saidMs: number | undefined, nowMs: number): number {
  return typeof saidMs === 'number' ? Math.min(nowMs, Math.max(saidMs, nowMs - GRACE_MS)) : nowMs;
}

/**
 * Requires that the request is of this app and has not expired.
 *
 * @throws UnauthorizedUseError
 */
export function requireOccasion(
  { appId, expiryMs }: EvidentRequest,
  occasion: { readonly appId: string; readonly nowMs: number },
): void {
  if (appId !== occasion.appId) throw new UnauthorizedUseError('the request was signed for a different app');
  // NaN, for a header that is not a number, is never later than a time.
  if (expiryMs !== undefined && !(expiryMs + GRACE_MS >= occasion.nowMs)) {
    throw new UnauthorizedUseError('the signed request has expired');
  }
}

// The public keys that last signed for a key quorum, tried first. A key that did not sign costs as much to try as one
// that did, and mostly the same keys sign again.
const recentSigners = new LRUCache<string, ReadonlySet<string>>({ max: 10_000 });

/**
 * Whether the evidence has enough valid signatures of the quorum's members. Signatures beyond the threshold are not
 * verified. Other work runs in between.
 *
 * INVARIANT: earlier signers only decide the order in which keys are tried.
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

function readPayload(payload: string): EvidentRequest {
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

/** The path of a URL with letters and digits as they are, however the client has encoded them (RFC 3986 §6.2.2.2). */
function plainPath(url: string): string {
  return new URL(url).pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[0-9a-z._~-]/i.test(character) ? character : encoded;
  });
}
