import {
  candidateUrls,
  canonicalPayloads,
  parseSignatureHeader,
  TooManySignaturesError,
} from '../engine/authorization/request-signatures.ts';
import { NotCanonicalizableError } from '../engine/crypto/encoding.ts';
import { ApiError, requestExpired } from '../errors.ts';
import type { ProposedRequest, RequestProof } from '../ports/operation-context.ts';
import type { Brand } from './brand.ts';
import { operationOf, type RequestState } from './request-state.ts';

// Only digits, and few enough for an exact number.
const UNIX_MS = /^(?:0|[1-9][0-9]{0,15})$/;

/**
 * Reads `service-request-expiry` (Unix ms) and refuses a request that arrives later. This is checked before any
 * signature, even if none is required. A request at exactly the expiry passes.
 *
 * @returns the expiry, or undefined without the header.
 * @throws ApiError request_expired, also for a malformed value.
 */
export function readRequestExpiry(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const expiryMs = UNIX_MS.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(expiryMs)) {
    throw new ApiError(
      'request_expired',
      'the request expiry must be a Unix timestamp in milliseconds, in decimal digits',
    );
  }
  if (expiryMs < nowMs) {
    throw requestExpired(
      `the request has expired: its expiry was ${expiryMs}, the server's time is ${nowMs}`,
      nowMs,
    );
  }
  return expiryMs;
}

/** The service headers that the signed payload contains if they are sent. */
const signedHeaders = ['service-app-id', 'service-idempotency-key', 'service-request-expiry'];

interface ProofOptions {
  /** Returns the URLs of this server. A function, because a free port is known only after the start. */
  readonly publicBaseUrls: () => readonly string[];
  /**
   * Whether a client may also sign the URL with the `Host` that it sends. The sender chooses that header, so a
   * signature for another server would be valid here too.
   */
  readonly isHostSigned: boolean;
  readonly brand: Brand | undefined;
}

/**
 * Reads the expiry and the signatures of a request. Only the expiry is checked here; domain verbs check the signatures.
 * Throws `request_expired`, and `invalid_data` for a header with too many signatures.
 */
export function readProof(
  state: RequestState,
  scheme: 'https' | 'http',
  options: ProofOptions,
): RequestProof {
  const expiryMs = readRequestExpiry(headerText(state, 'service-request-expiry'), state.nowMs);
  let payloads: readonly Uint8Array[] | undefined;
  return {
    signatures: readSignatures(state),
    expiryMs,
    userId: state.userId,
    sessionId: state.sessionId,
    publicClientNetwork: state.publicClientNetwork,
    canonicalPayloads: () => {
      payloads ??= payloadsOf(state, scheme, options);
      return payloads;
    },
    sentBody: () => state.rawBody.toString('utf8'),
    urlOf: (path) => ownUrl(state, scheme, options, path),
    payloadsOf: (proposed) => proposedPayloads(state, scheme, options, proposed),
  };
}

/**
 * Returns the URL of a path on this server, for a response.
 *
 * CHOICE: the URL has the host to which the request was sent, if that is a public host, or else the first public host.
 * So clients may use any name of the server.
 */
function ownUrl(state: RequestState, scheme: 'https' | 'http', options: ProofOptions, path: string): string {
  const publicBaseUrls = options.publicBaseUrls();
  const [ofRequest, ...others] = urlsOf(state, scheme, options, path);
  const known = candidateUrls({ publicBaseUrls, origin: undefined, target: path });
  return ofRequest === undefined || known.includes(ofRequest)
    ? (ofRequest ?? path)
    : (others[0] ?? ofRequest);
}

/**
 * Returns the payloads that a client may have signed for the proposed operation: one for the URL in the intent, and one
 * for each URL under which this server serves its path. If the intent has an expiry, all contain it.
 */
function proposedPayloads(
  state: RequestState,
  scheme: 'https' | 'http',
  options: ProofOptions,
  { method, path, url, body, expiryMs }: ProposedRequest,
): Uint8Array[] {
  const { brand } = options;
  const nameOf = (name: string) => brand?.headerName(name) ?? name;
  const urls = [...new Set([url, ...urlsOf(state, scheme, options, path)])];
  const appId = { [nameOf('service-app-id')]: state.app!.id };
  // INVARIANT: for an intent with an expiry, a signature without the expiry does not count, because it would outlive
  // the intent.
  const expiry = expiryMs === undefined ? {} : { [nameOf('service-request-expiry')]: String(expiryMs) };
  const written = brand === undefined ? body : brand.writeBody(body);
  return signable(() => canonicalPayloads({ method, urls, body: written, headers: { ...appId, ...expiry } }));
}

function payloadsOf(state: RequestState, scheme: 'https' | 'http', options: ProofOptions): Uint8Array[] {
  return signable(() =>
    canonicalPayloads({
      method: state.method,
      urls: urlsOf(state, scheme, options, state.target),
      body: bodyAsSent(state),
      headers: headersAsSent(state, options.brand),
    }),
  );
}

function signable<T>(write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof NotCanonicalizableError)) throw error;
    throw new ApiError('invalid_data', `body: cannot be signed, ${error.message}`, { cause: error });
  }
}

function readSignatures(state: RequestState): readonly string[] {
  try {
    return parseSignatureHeader(headerText(state, 'service-authorization-signature'));
  } catch (error) {
    if (!(error instanceof TooManySignaturesError)) throw error;
    throw new ApiError('invalid_data', `service-authorization-signature: ${error.message}`);
  }
}

function urlsOf(
  state: RequestState,
  scheme: 'https' | 'http',
  { publicBaseUrls: read, isHostSigned }: ProofOptions,
  target: string,
): string[] {
  const publicBaseUrls = read();
  const host = state.request.headers.host;
  const origin = host === undefined ? undefined : `${scheme}://${host}`;
  const isAccepted = isHostSigned || (origin !== undefined && publicBaseUrls.includes(origin));
  return candidateUrls({ publicBaseUrls, origin: isAccepted ? origin : undefined, target });
}

/**
 * CHOICE: a client signs `{}` or nothing for an operation without a body. A longer body of such an operation is not
 * parsed, because the limits of bodies do not apply to it, and parsing and sorting a megabyte of members takes long.
 */
const MAX_IGNORED_BYTES = 1_024;

// Parses the raw body, because the client signed it as it was sent, with the names of its brand and with unknown
// members.
function bodyAsSent(state: RequestState): unknown {
  const { rawBody: raw } = state;
  const isParsed = operationOf(state).hasBody || raw.length <= MAX_IGNORED_BYTES;
  if (raw.length === 0 || !isParsed) return undefined;
  try {
    return JSON.parse(raw.toString('utf8'));
  } catch {
    // Operations without a body accept any bytes. The signed payload then contains no body.
    return undefined;
  }
}

function headersAsSent(state: RequestState, brand: Brand | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of signedHeaders) {
    const value = headerText(state, name);
    if (value !== undefined) headers[brand?.headerName(name) ?? name] = value;
  }
  return headers;
}

function headerText(state: RequestState, name: string): string | undefined {
  const value = state.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
