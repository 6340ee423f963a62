import type { IncomingHttpHeaders } from 'node:http';
import { brandedProperties, brandedValues, didProperties } from '../generated/brand.ts';
import { errorCatalogue } from '../generated/errors.ts';

/** Translates between the neutral word `service` of the API document and the brand that clients use. */
export interface Brand {
  readonly prefix: string;
  /** Renames branded request headers to their neutral names. Headers with the neutral word are dropped. */
  readHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders;
  /** Returns the branded name of a header: `service-app-id` becomes `acme-app-id`. */
  headerName(neutral: string): string;
  /**
   * Translates a path parameter or query value from the brand to the neutral word. Only user DIDs contain the brand.
   */
  readParameter(value: string): string;
  readBody(body: unknown): unknown;
  writeBody(body: unknown): unknown;
  /** Translates text for people: error codes, header names and DIDs in it. */
  writeText(text: string): string;
  /** Translates a literal that contains the neutral word. */
  writeLiteral(value: string): string;
}

const NEUTRAL = 'service';

// Members with free content. They are never translated, because some of them are signed as they were sent.
const opaqueProperties = new Set(['custom_metadata', 'typed_data', 'abi']);

const brandedHeaders = ['app-id', 'authorization-signature', 'request-expiry', 'idempotency-key'];
const brandedCodes = Object.keys(errorCatalogue).filter((code) => code.includes(NEUTRAL));

interface Translation {
  readonly properties: ReadonlyMap<string, string>;
  /** The members that contain DIDs, by their names before translation. */
  readonly didProperties: ReadonlySet<string>;
  /** The translation of each literal, by the name of the member before translation. */
  readonly literals: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly didFrom: string;
  readonly didTo: string;
}

/**
 * Creates the translation for `prefix`; undefined for the neutral word itself, which needs none.
 *
 * @throws Error when `prefix` is not valid in a header name, a DID and a member name.
 */
export function createBrand(prefix: string): Brand | undefined {
  if (prefix === NEUTRAL) return undefined;
  if (!/^[a-z][a-z0-9]*$/.test(prefix)) {
    throw new Error(`the prefix must be a lower-case word of letters and digits, not \`${prefix}\``);
  }
  const write = (word: string): string => word.replace(NEUTRAL, prefix);
  const outward = translation((word) => [word, write(word)], prefix, true);
  const inward = translation((word) => [write(word), word], prefix, false);
  const words = wordsIn([...brandedProperties, ...brandedCodes]);
  return {
    prefix,
    headerName: write,
    writeLiteral: write,
    writeText: (text) => text.replace(words, write),
    readParameter: (value) => translateDid(value, inward),
    readBody: (body) => translate(body, '', inward),
    writeBody: (body) => translate(body, '', outward),
    readHeaders: (headers) => {
      const read: IncomingHttpHeaders = {};
      for (const [name, value] of Object.entries(headers)) {
        if (name.startsWith(`${prefix}-`)) read[NEUTRAL + name.slice(prefix.length)] = value;
        else if (!name.startsWith(`${NEUTRAL}-`)) read[name] = value;
      }
      return read;
    },
  };
}

/**
 * Creates the translation for a control plane, whose names have no brand. Only user DIDs are translated, because its
 * callers copy them from the API. In request bodies, only top-level members are translated: deeper values are requests
 * and payloads, which the API translates itself.
 */
export function createControlBrand(prefix: string): Brand | undefined {
  const brand = createBrand(prefix);
  if (brand === undefined) return undefined;
  const [own, neutral] = [`did:${prefix}:`, `did:${NEUTRAL}:`];
  const replaceStart = (text: string, from: string, to: string): string =>
    text.startsWith(from) ? to + text.slice(from.length) : text;
  const write = (value: unknown): unknown => {
    if (typeof value === 'string') return replaceStart(value, neutral, own);
    if (Array.isArray(value)) return value.map(write);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, write(inner)]));
  };
  return {
    ...brand,
    readHeaders: (headers) => headers,
    writeBody: write,
    readBody(body) {
      if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
      return Object.fromEntries(
        Object.entries(body).map(([name, value]) => [
          name,
          typeof value === 'string' && didProperties.includes(name)
            ? replaceStart(value, own, neutral)
            : value,
        ]),
      );
    },
  };
}

function translation(
  pair: (word: string) => [string, string],
  prefix: string,
  isOutward: boolean,
): Translation {
  const literals = { ...brandedValues, code: [...(brandedValues.code ?? []), ...brandedCodes] };
  const nameOf = (neutral: string): string =>
    brandedProperties.includes(neutral) ? pair(neutral)[0] : neutral;
  const [didFrom, didTo] = isOutward ? [NEUTRAL, prefix] : [prefix, NEUTRAL];
  return {
    properties: new Map(brandedProperties.map(pair)),
    didProperties: new Set(didProperties.map(nameOf)),
    literals: new Map(
      Object.entries(literals).map(([name, values]) => [nameOf(name), new Map(values.map(pair))]),
    ),
    didFrom: `did:${didFrom}:`,
    didTo: `did:${didTo}:`,
  };
}

function translate(value: unknown, name: string, words: Translation): unknown {
  if (typeof value === 'string') {
    if (words.didProperties.has(name)) return translateDid(value, words);
    return words.literals.get(name)?.get(value) ?? value;
  }
  if (Array.isArray(value)) return value.map((item) => translate(item, name, words));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      words.properties.get(key) ?? key,
      opaqueProperties.has(key) ? inner : translate(inner, key, words),
    ]),
  );
}

function translateDid(value: string, { didFrom, didTo }: Translation): string {
  return value.startsWith(didFrom) ? didTo + value.slice(didFrom.length) : value;
}

function wordsIn(words: readonly string[]): RegExp {
  const headers = brandedHeaders.map((name) => `\\b${NEUTRAL}-${name}\\b`);
  return new RegExp([`did:${NEUTRAL}:`, ...headers, ...words.map((word) => `\\b${word}\\b`)].join('|'), 'g');
}
