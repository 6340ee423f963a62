import { canonicalJson } from '../crypto/canonical-json.ts';

/** The parts of a request that an authorization signature covers. */
export interface SignedRequest {
  /** Upper case: `POST`, `PUT`, `PATCH`, `DELETE`. */
  readonly method: string;
  /** Every absolute URL that the client may have signed, most likely first. */
  readonly urls: readonly string[];
  /** The parsed JSON body; undefined when the request has none. */
  readonly body: unknown;
  /** The signed service headers under the names that the client sends: app id, idempotency key, request expiry. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The addresses under which a client may have sent a request. */
export interface RequestAddress {
  /** Configured public base URLs, with or without a trailing slash. */
  readonly publicBaseUrls: readonly string[];
  /** `scheme://host[:port]` of the request; undefined when it has no host. */
  readonly origin: string | undefined;
  /** Path and query exactly as sent, including an `/api` prefix and `ext_wal_` ids. */
  readonly target: string;
}

/**
 * The absolute URLs that a correct client may have signed: the path as sent under the request's own origin, then under
 * each public base URL, then the same with the target decoded. Without trailing slashes or duplicates.
 *
 * CHOICE: clients sign the URL as they write it, before or after their HTTP library encodes it.
 */
export function candidateUrls({ publicBaseUrls, origin, target }: RequestAddress): string[] {
  const bases = origin === undefined ? publicBaseUrls : [origin, ...publicBaseUrls];
  const decoded = decodedTarget(target);
  const targets = decoded === undefined ? [target] : [target, decoded];
  return [
    ...new Set(targets.flatMap((each) => bases.map((base) => withoutSlash(withoutSlash(base) + each)))),
  ];
}

// # % & + / = ?
const ENCODED_DELIMITER = /%(?=2[356BbFf]|3[DdFf])/g;

/**
 * Without percent-encoding; undefined if there is none, or if it does not decode.
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
 * Every text that a correct client could have signed for this request, most likely first.
 * Published clients encode an empty body in three ways: `""`, no `body` member, and `{}`.
 *
 * Throws `NotCanonicalizableError` when the body has no canonical form.
 */
// {"body":…,"headers":{…},"method":…,"url":…,"version":1}
export function canonicalPayloadTexts({ method, urls, body, headers }: SignedRequest): string[] {
  // The body is written once, however many URLs there are: `body` sorts before every other member.
  const bodies = bodyVariants(body).map(({ body: variant }) =>
    variant === undefined ? '{' : `{"body":${canonicalJson(variant)},`,
  );
  return urls.flatMap((url) => {
    const rest = canonicalJson({ version: 1, method, url, headers }).slice(1);
    return bodies.map((start) => start + rest);
  });
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
