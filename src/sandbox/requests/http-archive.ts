import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AnsweredRequest } from '../../ports/requests.ts';
import type { HttpArchive } from '../generated/schemas.ts';
import type { Header, Redaction } from './redact.ts';

/** After this many entries, the server can handle other requests. */
const BATCH = 100;

/**
 * Exports requests as HTTP Archive 1.2 (http://www.softwareishard.com/blog/har-12-spec/).
 *
 * @param origin the server's URL for requests without a `Host`.
 */
export async function httpArchiveOf(
  requests: readonly AnsweredRequest[],
  { redaction, origin, version }: { redaction: Redaction; origin: string; version: string },
): Promise<HttpArchive> {
  const entries: object[] = [];
  for (const [index, answered] of requests.entries()) {
    if (index % BATCH === BATCH - 1) await nextTurn();
    entries.push(entryOf(answered, redaction, origin));
  }
  return {
    log: {
      version: '1.2',
      creator: { name: 'custos', version },
      entries: entries as HttpArchive['log']['entries'],
    },
  };
}

function entryOf(answered: AnsweredRequest, redaction: Redaction, origin: string): object {
  const { durationMs, effects } = answered;
  return {
    startedDateTime: new Date(answered.machineMs).toISOString(),
    time: durationMs,
    request: requestOf(answered, redaction, origin),
    response: responseOf(answered, redaction),
    cache: {},
    // -1 means "unknown".
    timings: { send: -1, wait: durationMs, receive: -1 },
    _requestId: answered.id,
    _operationId: answered.operation ?? null,
    _authorizedBy: [...(answered.signers ?? [])],
    _events: effects.flatMap(({ events }) => events.map(({ id, type }) => ({ id, type }))),
    _allowedBy: effects.flatMap(({ policies }) => policies),
    ...(answered.why === undefined ? {} : { _why: answered.why }),
  };
}

function requestOf(answered: AnsweredRequest, redaction: Redaction, origin: string): object {
  const headers = redaction.requestHeaders(answered);
  const url = urlOf(answered.target, headerOf(headers, 'host'), origin);
  const text = textOf(redaction.requestBody(answered));
  return {
    method: answered.method,
    url: url.href,
    httpVersion: `HTTP/${answered.httpVersion}`,
    cookies: [],
    headers,
    queryString: [...url.searchParams].map(([name, value]) => ({ name, value })),
    headersSize: -1,
    bodySize: answered.rawBody.length,
    ...(text === undefined
      ? {}
      : { postData: { mimeType: headerOf(headers, 'content-type') ?? '', params: [], text } }),
  };
}

function responseOf(answered: AnsweredRequest, redaction: Redaction): object {
  const headers = redaction.responseHeaders(answered);
  const text = textOf(redaction.responseBody(answered));
  const size = Buffer.byteLength(answered.responseText ?? '');
  return {
    status: answered.status,
    statusText: '',
    httpVersion: `HTTP/${answered.httpVersion}`,
    cookies: [],
    headers,
    content: {
      size,
      mimeType: headerOf(headers, 'content-type') ?? '',
      ...(text === undefined ? {} : { text }),
    },
    redirectURL: '',
    headersSize: -1,
    bodySize: size,
  };
}

function textOf(body: unknown): string | undefined {
  if (body === null) return undefined;
  return typeof body === 'string' ? body : JSON.stringify(body);
}

function headerOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find((header) => header.name.toLowerCase() === name)?.value;
}

/**
 * Returns the URL that the client requested (RFC 9112 section 3.3). `Host` and target may be anything that Node.js
 * accepts. The target may be an absolute URL or `*`. A target that begins with two slashes is a path.
 */
export function urlOf(target: string, host: string | undefined, origin: string): URL {
  const { protocol, host: ownHost } = new URL(origin);
  const isHost = host !== undefined && host !== '' && URL.canParse(`${protocol}//${host}/`);
  const authority = isHost ? host : ownHost;
  const base = `${protocol}//${authority}`;
  const candidates = target.startsWith('/') ? [base + target] : [target, `${base}/${target}`];
  const known = candidates.find((each) => /^https?:\/\/[^/]/i.test(each) && URL.canParse(each));
  return new URL(known ?? `${base}/`);
}
