import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions, zstdDecompress } from 'node:zlib';
import { ApiError } from '../../errors.ts';
import { operations } from '../../generated/operations.ts';
import { requestValidators } from '../../generated/request-validators.js';
import { responseValidators } from '../../generated/response-validators.js';
import type { ValidateFunction } from '../../generated/validate-function.ts';
import { createBrand } from '../../server/brand.ts';
import { parseBody } from '../../server/parse-body.ts';
import {
  createRouteIndex,
  type Operation,
  parseQuery,
  type RequestValidators,
} from '../../server/route-index.ts';
import { bodyFault, describeFault, parametersFault } from '../../server/validation-issues.ts';

/** A request and its response, as a proxy received them. */
export interface SeenExchange {
  readonly method: string;
  /** The path and the query, as sent. */
  readonly target: string;
  /** Headers with names in lower case. */
  readonly requestHeaders: IncomingHttpHeaders;
  readonly requestBody: Buffer;
  readonly status: number;
  readonly responseHeaders: IncomingHttpHeaders;
  /** The response body without its content coding. */
  readonly responseBody: Buffer;
  /** The reason why the body could not be decoded. `responseBody` is then the received body. */
  readonly contentFault?: string | undefined;
}

/** The rules that a server or its client can violate. */
export const verifyRules = {
  'undocumented-path': 'The server answers a request that is not an operation of the contract.',
  'request-invalid': 'The server accepts a request that the contract does not allow.',
  'request-refused': 'The server refuses a request as invalid that the contract allows.',
  'status-undocumented': 'The contract does not document this status of the operation.',
  'code-undocumented': 'The contract does not document this error code of the status.',
  'response-invalid': 'The response does not have the schema of the contract.',
  'header-missing': 'The response lacks a header that clients need, or has another one.',
  'sandbox-differs': 'A sandbox answers the same request differently.',
  'sandbox-skipped': 'A sandbox was not asked the same, because too many requests wait for it.',
  'target-unreachable': 'The server did not answer.',
} as const;

export interface Finding {
  readonly rule: keyof typeof verifyRules;
  /** A `notice` may be a false alarm, because the schemas do not contain every rule of the API. */
  readonly severity: 'error' | 'notice';
  /** The operation and the status, such as `createWallet 400`. For other paths, the method and the path. */
  readonly place: string;
  readonly message: string;
}

/** The documented error codes by `<operation> <status>`. */
export type DocumentedCodes = ReadonlyMap<string, ReadonlySet<string>>;

const routes = createRouteIndex(Object.values(operations));

/** Finds the operation of a request. Returns undefined for a path that no operation has. */
function findRoute({ method, target }: Pick<SeenExchange, 'method' | 'target'>) {
  try {
    return routes.find(method === 'HEAD' ? 'GET' : method, target.split('?')[0]!);
  } catch {
    // The percent-encoding is invalid.
    return undefined;
  }
}

/** Returns the word that a client uses in place of `service`: the beginning of the name of its header `…-app-id`. */
export function prefixOf(headers: Readonly<Record<string, unknown>>): string {
  for (const name of Object.keys(headers)) {
    const [, prefix] = /^([a-z][a-z0-9]*)-app-id$/.exec(name) ?? [];
    if (prefix !== undefined) return prefix;
  }
  return 'service';
}

/** Returns the id of a request's operation, or undefined if the request is for none. */
export function operationIdOf(exchange: Pick<SeenExchange, 'method' | 'target'>): string | undefined {
  return findRoute(exchange)?.operation.id;
}

/** Compares a request and its response with the API document. Error responses are compared too. */
export function judgeExchange(exchange: SeenExchange, codes: DocumentedCodes): Finding[] {
  const { method, target, status } = exchange;
  const route = findRoute(exchange);
  if (route === undefined) {
    if (isPreflight(exchange) || refusals.has(status)) return [];
    const place = `${method} ${target.split('?')[0]}`;
    const message = `expected 404 or 405 for a request that is not an operation, got ${status}`;
    return [{ rule: 'undocumented-path', severity: 'error', place, message }];
  }
  const { operation, params } = route;
  const place = `${operation.id} ${status}`;
  const brand = createBrand(prefixOf(exchange.requestHeaders));
  const read = (body: unknown): unknown => (brand === undefined ? body : brand.readBody(body));
  const fault = requestFault(exchange, { operation, params: { ...params } }, brand);
  const findings = judgeRequest(exchange, { fault, place, body: read(bodyOf(exchange, operation)) });
  return [...findings, ...judgeResponse(exchange, { operation, codes, read })];
}

/**
 * Returns whether a request is the preflight that a browser sends for a page of another origin. It is not an
 * operation, so any response is correct.
 */
function isPreflight({ method, requestHeaders }: SeenExchange): boolean {
  return (
    method === 'OPTIONS' && 'origin' in requestHeaders && 'access-control-request-method' in requestHeaders
  );
}

/**
 * The statuses that are acceptable for an unknown path. A server may require credentials first, so that it does not
 * reveal which paths exist.
 */
const refusals: ReadonlySet<number> = new Set([401, 403, 404, 405, 429, 503]);

function judgeRequest(
  { status, responseHeaders }: SeenExchange,
  { fault, place, body }: { fault: string | undefined; place: string; body: unknown },
): Finding[] {
  if (fault !== undefined && status < 400) {
    return [{ rule: 'request-invalid', severity: 'error', place, message: fault }];
  }
  const { code, error } = (body ?? {}) as { code?: unknown; error?: unknown };
  if (fault !== undefined || code !== 'invalid_data') return [];
  // The client has asked a mock for this error (RFC 7240 §3).
  if (/^(code|example)=/.test(String(responseHeaders['preference-applied'] ?? ''))) return [];
  return [{ rule: 'request-refused', severity: 'notice', place, message: String(error) }];
}

/** Returns the reason why the API document does not allow the request, or undefined if it does. */
function requestFault(
  exchange: SeenExchange,
  { operation, params: path }: { operation: Operation; params: Record<string, string> },
  brand: ReturnType<typeof createBrand>,
): string | undefined {
  const { params, body } = (requestValidators as Record<string, RequestValidators>)[operation.id]!;
  const { requestHeaders, requestBody, target } = exchange;
  const headers = brand === undefined ? requestHeaders : brand.readHeaders(requestHeaders);
  const query = { ...parseQuery(target) };
  if (brand !== undefined) {
    for (const name of Object.keys(path)) path[name] = brand.readParameter(path[name]!);
    for (const [name, value] of Object.entries(query)) {
      query[name] = Array.isArray(value) ? value.map(brand.readParameter) : brand.readParameter(value);
    }
  }
  try {
    if (!params({ path, query, headers: { ...headers } })) return parametersFault(params.errors!).message;
    const parsed = parseBody(operation, headers, requestBody);
    const neutral = brand === undefined ? parsed : brand.readBody(parsed);
    if (body === undefined || parsed === undefined || body(neutral)) return undefined;
    return bodyFault(body.errors!).message;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** Returns the parsed body, the text if it is not JSON, or undefined if there is no body. */
function bodyOf({ responseBody, status }: SeenExchange, { fileType, successStatus }: Operation): unknown {
  if (responseBody.length === 0) return undefined;
  const text = responseBody.toString('utf8');
  if (fileType !== undefined && status === successStatus) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function judgeResponse(
  exchange: SeenExchange,
  {
    operation,
    codes,
    read,
  }: {
    operation: Operation;
    codes: DocumentedCodes;
    read: (body: unknown) => unknown;
  },
): Finding[] {
  const { method, status } = exchange;
  const place = `${operation.id} ${status}`;
  const byStatus = (responseValidators as Record<string, Record<string, ValidateFunction>>)[operation.id]!;
  const validate = byStatus[status];
  if (validate === undefined) {
    const message = `expected ${Object.keys(byStatus).join(', ')}, got ${status}`;
    return [{ rule: 'status-undocumented', severity: 'error', place, message }];
  }
  // The response to HEAD has no body.
  if (method === 'HEAD') return [];
  const findings = judgeHeaders(exchange, operation);
  if (exchange.contentFault !== undefined) {
    const message = exchange.contentFault;
    return [...findings, { rule: 'response-invalid', severity: 'error', place, message }];
  }
  const body = read(bodyOf(exchange, operation));
  if (!validate(body)) {
    const { pointer, message } = describeFault(validate.errors ?? []);
    findings.push({
      rule: 'response-invalid',
      severity: 'error',
      place,
      message: `${pointer || 'body'}: ${message}`,
    });
  }
  const { code } = (body ?? {}) as { code?: unknown };
  const documented = codes.get(place);
  if (status >= 400 && typeof code === 'string' && documented?.has(code) !== true) {
    const known = [...(documented ?? [])].join(', ');
    const message = `expected one of ${known}, got \`${code.slice(0, 100)}\``;
    findings.push({ rule: 'code-undocumented', severity: 'error', place, message });
  }
  return findings;
}

/**
 * Checks response headers that the API document does not describe. HTTP requires them (RFC 9110 §15.5.2), or a client
 * needs them to read the body or to know when to retry.
 */
function judgeHeaders(exchange: SeenExchange, operation: Operation): Finding[] {
  const { status, requestHeaders, responseHeaders, responseBody } = exchange;
  const faults: string[] = [];
  if (responseBody.length > 0) {
    const isFile = operation.fileType !== undefined && status === operation.successStatus;
    const expected = isFile ? operation.fileType : 'application/json';
    const [type = ''] = (responseHeaders['content-type'] ?? '').split(';');
    if (type.trim().toLowerCase() !== expected) {
      const got = type === '' ? 'none' : `\`${type.slice(0, 100)}\``;
      faults.push(`content-type: expected \`${expected}\`, got ${got}`);
    }
  }
  // In a response to a script, this header would make the browser ask the page's user for a password.
  const isScript = requestHeaders['sec-fetch-mode'] === 'cors';
  if (status === 401 && !isScript && responseHeaders['www-authenticate'] === undefined) {
    faults.push('www-authenticate: expected the scheme of the credentials, got none');
  }
  const waiting = ['retry-after', 'retry-after-ms', 'x-ratelimit-reset'];
  if (status === 429 && waiting.every((name) => responseHeaders[name] === undefined)) {
    faults.push(`${waiting[0]}: expected it, or ${waiting.slice(1).join(' or ')}, got none`);
  }
  const place = `${operation.id} ${status}`;
  return faults.map((message) => ({ rule: 'header-missing', severity: 'error', place, message }));
}

type Decode = (bytes: Buffer, options: ZlibOptions) => Promise<Buffer>;

const decoders: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip) as Decode,
  'x-gzip': promisify(gunzip) as Decode,
  br: promisify(brotliDecompress) as Decode,
  zstd: promisify(zstdDecompress) as Decode,
  // Some servers send the data without the zlib format around it (RFC 9110 §8.4.1.2).
  deflate: (bytes, options) =>
    isZlib(bytes) ? promisify(inflate)(bytes, options) : promisify(inflateRaw)(bytes, options),
};

/**
 * Returns whether the bytes are in the zlib format: the method is 8, and the first two bytes are a multiple of 31
 * (RFC 1950 §2.2).
 */
function isZlib(bytes: Buffer): boolean {
  return bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0;
}

/** CHOICE: at most three codings, more than any server uses. Each coding may multiply the amount of data to decode. */
const MAX_CODINGS = 3;

interface DecodedContent {
  /** The decoded body, or the received body if it could not be decoded. */
  readonly body: Buffer;
  /** The reason why the body could not be decoded. */
  readonly fault: string | undefined;
}

/**
 * Decodes the `Content-Encoding` of a message (RFC 9110 §8.4).
 *
 * @param most the maximum number of bytes after each decoding, because a few bytes can decode to gigabytes.
 */
export async function decodeContent(
  received: Buffer,
  contentEncoding: string | undefined,
  most: number,
): Promise<DecodedContent> {
  const codings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && each !== 'identity');
  if (received.length === 0 || codings.length === 0) return { body: received, fault: undefined };
  const refuse = (fault: string): DecodedContent => ({ body: received, fault });
  if (codings.length > MAX_CODINGS) {
    return refuse(`content-encoding: expected at most ${MAX_CODINGS} codings, got ${codings.length}`);
  }
  let body = received;
  // The header lists the codings in the order in which they were applied.
  for (const coding of codings.reverse()) {
    const decode = Object.hasOwn(decoders, coding) ? decoders[coding] : undefined;
    if (decode === undefined) {
      const known = Object.keys(decoders).join(', ');
      return refuse(`content-encoding: expected one of ${known}, got \`${coding.slice(0, 100)}\``);
    }
    try {
      body = await decode(body, { maxOutputLength: most });
    } catch (error) {
      return refuse(faultOf(coding, error as NodeJS.ErrnoException, most));
    }
  }
  return { body, fault: undefined };
}

function faultOf(coding: string, { code, message }: NodeJS.ErrnoException, most: number): string {
  if (code === 'ERR_BUFFER_TOO_LARGE') return `expected a body of at most ${most} bytes after ${coding}`;
  return `expected a body in the coding ${coding}: ${message}`;
}
