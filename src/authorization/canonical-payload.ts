import { canonicalJson } from '../crypto/canonical-json.ts';

/** The parts of a request that an authorization signature covers. */
export interface SignedRequest {
  /** Upper case: `POST`, `PUT`, `PATCH`, `DELETE`. */
  readonly method: string;
  /** Every absolute URL under which the client may know this request, the likeliest first. */
  readonly urls: readonly string[];
  /** The JSON body as parsed; undefined when the request has none. */
  readonly body: unknown;
  /** The service headers that are signed, under the names the client uses: app id, idempotency key, request expiry. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Where a request may have been sent to. */
export interface RequestAddress {
  /** Configured public base URLs, with or without a slash at the end. */
  readonly publicBaseUrls: readonly string[];
  /** `scheme://host[:port]` of the request itself, when it names a host. */
  readonly origin: string | undefined;
  /** Path and query exactly as sent: an `/api` prefix and an `ext_wal_` id stay as they are. */
  readonly target: string;
}

/**
 * The absolute URLs an honest client may have signed: the request's own origin first, then each public base URL,
 * always with the path as sent. No slash at the end, no repetition.
 */
export function candidateUrls({ publicBaseUrls, origin, target }: RequestAddress): string[] {
  const bases = origin === undefined ? publicBaseUrls : [origin, ...publicBaseUrls];
  return [...new Set(bases.map((base) => withoutSlash(withoutSlash(base) + target)))];
}

/**
 * Every text that an honest client could have signed for this request, the likeliest first.
 * An empty body has three spellings among published clients: `""`, no member, `{}`.
 *
 * Throws `NotCanonicalizableError` when the body has no canonical form.
 */
// {"body":…,"headers":{…},"method":…,"url":…,"version":1}
export function canonicalPayloadTexts({ method, urls, body, headers }: SignedRequest): string[] {
  return urls.flatMap((url) =>
    bodyVariants(body).map((variant) => canonicalJson({ version: 1, method, url, ...variant, headers })),
  );
}

/** `canonicalPayloadTexts` as the UTF-8 bytes that are hashed and signed. */
export function canonicalPayloads(request: SignedRequest): Uint8Array[] {
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
