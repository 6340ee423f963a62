import { createHash, hash } from 'node:crypto';
import { canonicalJson } from '../crypto/canonical-json.ts';
import { decodeCanonicalBase64, verifyP256 } from '../crypto/p256.ts';
import { recoverP256PublicKeys } from '../crypto/p256-recovery.ts';

/** A part of the signed payload that a client may build differently from the server. */
type PayloadPart = 'url' | 'method' | 'body' | 'headers' | 'version' | 'serialisation';

/** A payload with one known client mistake. */
export interface PayloadVariant {
  readonly part: PayloadPart;
  /** Description of the mistake, shown to the caller. */
  readonly mistake: string;
  readonly bytes: Uint8Array;
}

export interface SignatureExplanation {
  readonly encoding: 'der' | 'raw' | 'not base64' | 'neither DER nor 64 bytes';
  /** The key under which the signature verifies over an expected payload. */
  readonly key?: string;
  /** Set when the signature verifies under `key` over a payload with a known mistake. */
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
 * Classifies one signature: its encoding, the key that verifies it, or the known mistake in the payload it covers.
 *
 * Shape: `signature` base64; `payloads` canonical texts; `keys` canonical SubjectPublicKeyInfo.
 */
export function explainSignature({
  signature,
  payloads,
  keys,
}: {
  readonly signature: string;
  readonly payloads: readonly string[];
  readonly keys: readonly string[];
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
  for (const payload of payloads) {
    for (const { part, mistake, bytes: text } of payloadVariants(payload)) {
      const key = keyOver(text);
      if (key !== undefined) return { encoding, nearMiss: { key, part, mistake } };
    }
  }
  return { encoding };
}

/**
 * Applies each known mistake to a canonical payload. Omits mistakes that do not change it. Empty for a text that is not
 * a payload.
 */
export function payloadVariants(text: string): PayloadVariant[] {
  const payload = parsePayload(text);
  if (payload === undefined) return [];
  const seen = new Set([text]);
  return mistakesIn(payload, text).flatMap(([part, mistake, changed]) => {
    if (seen.has(changed)) return [];
    seen.add(changed);
    // The digest is held as a latin1 string, one character per byte.
    return [
      {
        part,
        mistake,
        bytes: new Uint8Array(Buffer.from(changed, mistake === HASHED_TWICE ? 'latin1' : 'utf8')),
      },
    ];
  });
}

function mistakesIn(payload: Payload, text: string): [PayloadPart, string, string][] {
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
    ...bodyVariants(payload.body).map(([mistake, body]) => canonical('body', mistake, { body })),
    ...headerVariants(payload.headers).map(([mistake, headers]) =>
      canonical('headers', mistake, { headers }),
    ),
    canonical('version', 'the version was left out', { version: undefined }),
    canonical('version', 'the version was the string `1`', { version: '1' }),
    ...serializationVariants(payload, text),
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
  ];
}

function methodVariants(method: string): [string, unknown][] {
  const others = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'].filter((other) => other !== method);
  return [
    ...others.map((other): [string, unknown] => [`the method was \`${other}\``, other]),
    ['the method was in lower case', method.toLowerCase()],
    ['the method was left out', undefined],
  ];
}

function bodyVariants(body: unknown): [string, unknown][] {
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
