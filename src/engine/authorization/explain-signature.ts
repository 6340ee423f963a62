import { createHash, hash } from 'node:crypto';
import { canonicalJson } from '../crypto/encoding.ts';
import { decodeCanonicalBase64, recoverP256PublicKeys, verifyP256 } from '../crypto/p256.ts';

/** A part of the signed payload that a client may build differently from the server. */
type PayloadPart = 'url' | 'method' | 'body' | 'headers' | 'version' | 'serialisation';

/** A payload as a client with one known mistake would have built it. */
export interface PayloadVariant {
  readonly part: PayloadPart;
  /** Describes the mistake to the caller. */
  readonly mistake: string;
  readonly bytes: Uint8Array;
}

export interface SignatureExplanation {
  readonly encoding: 'der' | 'raw' | 'not base64' | 'neither DER nor 64 bytes';
  /** The key for which the signature is valid over an expected payload. */
  readonly key?: string;
  /** Keys outside `keys` for which the signature is valid over an expected payload. */
  readonly strangers?: readonly string[];
  /** Set if the signature is valid for `key`, but over a payload with a known mistake. */
  readonly nearMiss?: { readonly key: string; readonly part: PayloadPart; readonly mistake: string };
}

interface Payload {
  version?: unknown;
  method?: unknown;
  url?: unknown;
  body?: unknown;
  headers?: unknown;
}

/**
 * Classifies one signature: its encoding, the key for which it is valid, or the known mistake in the payload that was
 * signed.
 *
 * @param signature in base64.
 * @param payloads the canonical payloads of the request.
 * @param keys in canonical SubjectPublicKeyInfo.
 * @param sentBody the body as it was sent, whose members may have another order.
 */
export function explainSignature({
  signature,
  payloads,
  keys,
  sentBody,
}: {
  readonly signature: string;
  readonly payloads: readonly string[];
  readonly keys: readonly string[];
  readonly sentBody?: string | undefined;
}): SignatureExplanation {
  const bytes = decodeCanonicalBase64(signature);
  if (bytes === undefined) return { encoding: 'not base64' };
  const encoding = encodingOf(bytes);
  if (encoding !== 'der' && encoding !== 'raw') return { encoding };

  const encoder = new TextEncoder();
  const known = new Set(keys);
  const keysOver = recoverP256PublicKeys(bytes);
  const keyOver = (text: Uint8Array) =>
    keysOver?.(hash('sha256', text, 'buffer')).find((key) => known.has(key) && verifyP256(key, text, bytes));

  for (const payload of payloads) {
    const key = keyOver(encoder.encode(payload));
    if (key !== undefined) return { encoding, key };
  }
  for (const [index, payload] of payloads.entries()) {
    // Only the first payload is tried with every order of its members, because there are so many orders.
    const orders = index === 0 ? unsortedVariants(payload, sentBody) : [];
    for (const { part, mistake, bytes: text } of [...payloadVariants(payload, sentBody), ...orders]) {
      const key = keyOver(text);
      if (key !== undefined) return { encoding, nearMiss: { key, part, mistake } };
    }
  }
  const strangers = payloads.flatMap((payload) => keysOver?.(hash('sha256', payload, 'buffer')) ?? []);
  return strangers.length === 0 ? { encoding } : { encoding, strangers };
}

/**
 * Applies each known mistake to a canonical payload. Skips mistakes that would not change it. Returns an empty list
 * for a string that is not a payload.
 */
export function payloadVariants(text: string, sentBody?: string): PayloadVariant[] {
  const payload = parsePayload(text);
  if (payload === undefined) return [];
  const seen = new Set([text]);
  return mistakesIn(payload, text, sentBody).flatMap(([part, mistake, changed]) => {
    if (seen.has(changed)) return [];
    seen.add(changed);
    // The digest is a latin1 string with one character per byte.
    return [
      {
        part,
        mistake,
        bytes: new Uint8Array(Buffer.from(changed, mistake === HASHED_TWICE ? 'latin1' : 'utf8')),
      },
    ];
  });
}

/**
 * Returns the payload as `JSON.stringify` writes it, in every order of its members, each with every form of the body.
 * If the sent body is unknown, the canonical body is the only form.
 */
function unsortedVariants(text: string, sentBody: string | undefined): PayloadVariant[] {
  const payload = parsePayload(text);
  if (payload === undefined) return [];
  const { body, ...others } = payload;
  const written = Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)] as const);
  const bodies = body === undefined ? [undefined] : bodyTexts(body, sentBody);
  const seen = new Set([text]);
  return bodies.flatMap((bodyText) => {
    const members = bodyText === undefined ? written : [...written, ['body', bodyText] as const];
    return permutations(members).flatMap((order): PayloadVariant[] => {
      const changed = `{${order.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
      if (seen.has(changed)) return [];
      seen.add(changed);
      const names = order.map(([name]) => name).join(', ');
      const isBodyOnly =
        names ===
        order
          .map(([name]) => name)
          .sort()
          .join(', ');
      const mistake = isBodyOnly
        ? 'the body was signed as it was sent, not as canonical JSON (RFC 8785), whose members are sorted'
        : `the payload was signed as \`JSON.stringify\` writes it, members in the order ${names}: sign canonical JSON (RFC 8785), whose members are sorted`;
      return [{ part: 'serialisation', mistake, bytes: new TextEncoder().encode(changed) }];
    });
  });
}

/**
 * Returns the body in every form that a client may have signed: canonical, re-serialized in the sent order, and
 * exactly as sent.
 */
function bodyTexts(body: unknown, sentBody: string | undefined): string[] {
  const sent = sentBody === undefined ? [] : [JSON.stringify(readJson(sentBody) ?? body), sentBody];
  return [...new Set([JSON.stringify(body), ...sent])];
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, index) =>
    permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]),
  );
}

function mistakesIn(payload: Payload, text: string, sentBody?: string): [PayloadPart, string, string][] {
  const canonical = (part: PayloadPart, mistake: string, change: Payload): [PayloadPart, string, string] => [
    part,
    mistake,
    canonicalJson({ ...payload, ...change }),
  ];
  return [
    ...urlVariants(String(payload.url)).map(([mistake, url]) => canonical('url', mistake, { url })),
    ...methodVariants(String(payload.method)).map(([mistake, method]) =>
      canonical('method', mistake, { method }),
    ),
    ...bodyVariants(payload.body, sentBody).map(([mistake, body]) => canonical('body', mistake, { body })),
    ...headerVariants(payload.headers).map(([mistake, headers]) =>
      canonical('headers', mistake, { headers }),
    ),
    canonical('version', 'the version was left out', { version: undefined }),
    canonical('version', 'the version was the string `1`', { version: '1' }),
    ...serializationVariants(payload, text),
    ...(sentBody === undefined || sentBody === ''
      ? []
      : [['serialisation', 'only the body was signed', sentBody] satisfies [PayloadPart, string, string]]),
  ];
}

function urlVariants(url: string): [string, unknown][] {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined) return [];
  const path = parsed.pathname + parsed.search;
  const scheme = parsed.protocol === 'https:' ? 'http:' : 'https:';
  const otherPath = path.startsWith('/api/') ? path.slice(4) : `/api${path}`;
  return [
    ['the URL ended in a slash', `${url}/`],
    [`the URL began with \`${scheme}//\``, `${scheme}//${parsed.host}${path}`],
    ['the URL named no port', `${parsed.protocol}//${parsed.hostname}${path}`],
    ['the path differed by the prefix `/api`', `${parsed.origin}${otherPath}`],
    ['the URL had no query', `${parsed.origin}${parsed.pathname}`],
    ['only the path was signed', path],
    ['only the base URL was signed', parsed.origin],
    ['the URL was left out', undefined],
    ...otherHosts(parsed, path),
  ];
}

// Host names under which a server on this machine or in a container on the same network is usually reached.
const usualHosts = [
  'localhost',
  '127.0.0.1',
  '[::1]',
  '0.0.0.0',
  'host.docker.internal',
  'custos',
  'api',
  'wallet',
];

/**
 * Returns the same path under a server's other host names, with the URL's own port, the default port of the sandbox,
 * and no port.
 */
function otherHosts(parsed: URL, path: string): [string, unknown][] {
  const ports = [...new Set([parsed.port, '4010', ''])];
  return usualHosts.flatMap((host) =>
    ports.flatMap((port): [string, unknown][] => {
      const named = port === '' ? host : `${host}:${port}`;
      if (named === parsed.host) return [];
      const what = port === parsed.port ? host : named;
      return ['https:', 'http:'].map((scheme) => [
        `the URL had the host \`${what}\` instead of \`${parsed.host}\``,
        `${scheme}//${named}${path}`,
      ]);
    }),
  );
}

function methodVariants(method: string): [string, unknown][] {
  const others = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'].filter((other) => other !== method);
  return [
    ...others.map((other): [string, unknown] => [`the method was \`${other}\``, other]),
    ['the method was in lower case', method.toLowerCase()],
    ['the method was left out', undefined],
  ];
}

function bodyVariants(body: unknown, sentBody: string | undefined): [string, unknown][] {
  const asSent: [string, unknown][] =
    sentBody === undefined || sentBody === ''
      ? []
      : [sentBody, JSON.stringify(readJson(sentBody))].map((text) => [
          'the body was signed as a string of JSON',
          text,
        ]);
  return [
    ['the body was the empty string', ''],
    ['the body was left out', undefined],
    ['the body was `{}`', {}],
    ['the body was null', null],
    ['the body was signed as a string of JSON', JSON.stringify(body)],
    [
      'the body was signed as a string of canonical JSON',
      body === undefined ? undefined : canonicalJson(body),
    ],
    ...asSent,
  ];
}

function headerVariants(headers: unknown): [string, unknown][] {
  const entries = Object.entries(typeof headers === 'object' && headers !== null ? headers : {});
  const without = (dropped: string) => Object.fromEntries(entries.filter(([name]) => name !== dropped));
  return [
    ...entries.map(([name]): [string, unknown] => [`the header \`${name}\` was not signed`, without(name)]),
    ...entries
      .filter(([, value]) => /^[0-9]+$/.test(String(value)))
      .map(([name, value]): [string, unknown] => [
        `the header \`${name}\` was signed as a number`,
        { ...without(name), [name]: Number(value) },
      ]),
    [
      'header names were signed with capitals',
      Object.fromEntries(entries.map(([name, value]) => [name.replaceAll(/(^|-)[a-z]/g, upper), value])),
    ],
    ['no header was signed', {}],
    ['the headers were left out', undefined],
  ];
}

const HASHED_TWICE = 'the payload was hashed twice';

function serializationVariants(payload: Payload, text: string): [PayloadPart, string, string][] {
  const { version, method, url, body, headers } = payload;
  const digest = createHash('sha256').update(text, 'utf8').digest();
  const mistakes: [string, string][] = [
    [
      'the payload was not sorted: version, method, url, body, headers',
      JSON.stringify({ version, method, url, body, headers }),
    ],
    ['the payload was indented by two spaces', JSON.stringify(JSON.parse(text), null, 2)],
    ['the payload ended in a line feed', `${text}\n`],
    ['the payload was signed as base64', Buffer.from(text, 'utf8').toString('base64')],
    [HASHED_TWICE, digest.toString('latin1')],
    ['the hash was signed as hex', digest.toString('hex')],
  ];
  return mistakes.map(([mistake, changed]) => ['serialisation', mistake, changed]);
}

function upper(letters: string): string {
  return letters.toUpperCase();
}

function encodingOf(bytes: Uint8Array): SignatureExplanation['encoding'] {
  if (bytes.length === 64) return 'raw';
  return bytes[0] === 0x30 && bytes[1] === bytes.length - 2 ? 'der' : 'neither DER nor 64 bytes';
}

function parsePayload(text: string): Payload | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'url' in value ? value : undefined;
  } catch {
    return undefined;
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
