import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { printParseErrorCode, visit } from 'jsonc-parser';
import { ApiError, shorten } from '../errors.ts';
import type { Operation } from './route-index.ts';

/** The first syntax error in a text that is not JSON. */
interface JsonFault {
  /** Counted from 1, like the column. */
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

/** Thrown when the first fault is found, so that the visitor stops. */
class FaultFoundError extends Error {
  readonly fault: JsonFault;
  constructor(fault: JsonFault) {
    super(fault.expected);
    this.fault = fault;
  }
}

/** Errors inside a token, and what was expected. Their position is the start of the token. */
const insideTokens: Readonly<Record<string, string>> = {
  InvalidUnicode: 'four hex digits after each `\\u` of this string',
  InvalidEscapeCharacter: 'backslashes of this string to be escaped',
  UnexpectedEndOfString: 'a closing double quote of this string, on the same line',
  InvalidCharacter: 'control characters of this string to be escaped',
  UnexpectedEndOfNumber: 'a complete number',
};

/**
 * Returns the first token that violates the grammar of RFC 8259; undefined if there is none. Call it only after
 * `JSON.parse` has failed, whose messages do not always contain the position.
 *
 * @param text nested, up to its first syntax error, no deeper than the call stack allows.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const open: ('{' | '[')[] = [];
  let expected = 'a value';
  const afterValue = (): void => {
    const innermost = open.at(-1);
    if (innermost === undefined) expected = 'the end of the text';
    else expected = innermost === '{' ? '`,` or `}`' : '`,` or `]`';
  };
  // The length is 0 if the text ends before the bracket.
  const onEnd = (_offset: number, length: number): void => {
    if (length === 0) return;
    open.pop();
    afterValue();
  };
  try {
    visit(
      text,
      {
        onObjectBegin() {
          open.push('{');
          expected = 'a property name in double quotes or `}`';
        },
        onArrayBegin() {
          open.push('[');
          expected = 'a value or `]`';
        },
        onObjectProperty() {
          expected = '`:`';
        },
        onSeparator(character) {
          const isName = character === ',' && open.at(-1) === '{';
          expected = isName ? 'a property name in double quotes' : 'a value';
        },
        onLiteralValue: afterValue,
        onObjectEnd: onEnd,
        onArrayEnd: onEnd,
        onError(code, _offset, _length, line, column) {
          // Stop here, because the parser would continue after a fault and could recurse too deeply.
          throw new FaultFoundError({
            line: line + 1,
            column: column + 1,
            expected: insideTokens[printParseErrorCode(code)] ?? expected,
          });
        },
      },
      { disallowComments: true },
    );
    return undefined;
  } catch (error) {
    if (error instanceof FaultFoundError) return error.fault;
    throw error;
  }
}

function isForm(headers: IncomingHttpHeaders): boolean {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}

/**
 * Returns the fields of a form that the operation defines. RFC 6749 section 3.2: unknown fields and empty fields are
 * ignored, and no field may be repeated.
 *
 * @throws ApiError invalid_request
 */
function parseForm(raw: Buffer, known: readonly string[]): Record<string, string> {
  if (!isUtf8(raw)) throw new ApiError('invalid_request', 'body: the text is not UTF-8');
  const fields: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(raw.toString('utf8'))) {
    if (!known.includes(name) || value === '') continue;
    // PostgreSQL rejects U+0000 in text parameters.
    if (value.includes('\0')) throw new ApiError('invalid_request', `body: \`${name}\` contains U+0000`);
    if (Object.hasOwn(fields, name)) throw new ApiError('invalid_request', `body: \`${name}\` is repeated`);
    fields[name] = value;
  }
  return fields;
}

// CHOICE: deeper than any schema of the API, but shallow enough for every recursive function that reads a body.
const MAX_DEPTH = 128;
// CHOICE: objects with tens of thousands of members take long to parse and validate, and so do hundreds of thousands of
// small objects or values. No schema of the API comes near these limits.
const MAX_MEMBERS = 5_000;
const MAX_NODES = 50_000;
const MAX_VALUES = 100_000;

/**
 * Parses the body. Returns undefined if the operation has none.
 *
 * @throws ApiError unsupported_media_type; invalid_data for a missing or too complex body, for a syntax error with its
 * position, or for a duplicate member with its pointer (RFC 7493 section 2.3); invalid_request for an invalid form.
 */
export function parseBody(operation: Operation, headers: IncomingHttpHeaders, raw: Buffer): unknown {
  if (!operation.hasBody) return undefined;
  if (raw.length === 0) {
    if (operation.bodyRequired) throw bodyFault('the request has no body');
    return undefined;
  }
  if (operation.formFields !== undefined && isForm(headers)) return parseForm(raw, operation.formFields);
  requireJson(headers);
  if (!isUtf8(raw)) throw bodyFault('the text is not UTF-8');
  const members = countSmall(raw);
  const text = raw.toString('utf8');
  const body = parseJson(text);
  // Of members with the same name, `JSON.parse` keeps only the last one.
  if (membersOf(body) !== members) throw memberSentTwice(text);
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const fault = findJsonFault(text);
    if (fault === undefined) throw bodyFault('the text is not JSON');
    throw bodyFault(`broken JSON at line ${fault.line}, column ${fault.column}: expected ${fault.expected}`);
  }
}

function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers['content-type'];
  if (type !== 'application/json' && !isJsonType(type)) throw new ApiError('unsupported_media_type');
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new ApiError(
      'unsupported_media_type',
      'compressed bodies are not supported: leave out `Content-Encoding`',
    );
  }
}

function isJsonType(header: string | undefined): boolean {
  const [type = '', ...parameters] = (header ?? '').toLowerCase().split(';');
  const charset = parameters.map((item) => item.trim()).find((item) => item.startsWith('charset='));
  const isUtf8Charset = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === 'application/json' && isUtf8Charset;
}

/**
 * Refuses JSON that is nested deeper than `MAX_DEPTH`, has more than `MAX_MEMBERS` members in one object, more than
 * `MAX_NODES` objects and lists, or more than `MAX_VALUES` values.
 * @returns the number of members of all objects.
 */
function countSmall(raw: Buffer): number {
  let total = 0;
  let depth = 0;
  let nodes = 0;
  let values = 1;
  let inString = false;
  // The number of members in the open object at each depth.
  const members = new Uint32Array(MAX_DEPTH + 1);
  for (let index = 0; index < raw.length; index += 1) {
    const byte = raw[index];
    if (inString) {
      if (byte === 0x5c) index += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      nodes += 1;
      if (depth > MAX_DEPTH) throw bodyFault(`nested deeper than ${MAX_DEPTH} levels`);
      if (nodes > MAX_NODES) throw bodyFault(`more than ${MAX_NODES} objects and lists`);
      members[depth] = 0;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    } else if (byte === 0x2c) {
      values += 1;
      if (values > MAX_VALUES) throw bodyFault(`more than ${MAX_VALUES} values`);
    } else if (byte === 0x3a) {
      total += 1;
      members[depth] = (members[depth] ?? 0) + 1;
      if (members[depth]! > MAX_MEMBERS) throw bodyFault(`an object with more than ${MAX_MEMBERS} members`);
    }
  }
  return total;
}

/** Returns the number of members of all objects in a parsed body. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let total = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') total += membersOf(item);
    return total;
  }
  for (const name of Object.keys(value)) {
    total += 1;
    const member = (value as Record<string, unknown>)[name];
    if (typeof member === 'object') total += membersOf(member);
  }
  return total;
}

// The closing quote is optional, so that a text without an end is not scanned again from each of its quotes.
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],]/gs;

interface Open {
  /** The names of an object's members; undefined for a list. */
  readonly names: Set<string> | undefined;
  /** The name or index of the current value. */
  at: string | number | undefined;
}

/**
 * Returns the refusal of a body in which an object has two members with the same name.
 *
 * @param text valid JSON.
 */
function memberSentTwice(text: string): ApiError {
  const open: Open[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    const innermost = open.at(-1);
    if (token === '{') open.push({ names: new Set(), at: undefined });
    else if (token === '[') open.push({ names: undefined, at: 0 });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && innermost !== undefined)
      innermost.at = typeof innermost.at === 'number' ? innermost.at + 1 : undefined;
    else if (innermost?.names !== undefined && innermost.at === undefined) {
      innermost.at = JSON.parse(token) as string;
      if (innermost.names.has(innermost.at)) break;
      innermost.names.add(innermost.at);
    }
  }
  // RFC 6901 section 3
  const pointer = open.map(({ at }) => `/${String(at).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return bodyFault('expected the member once, got it twice', shorten(pointer));
}

function bodyFault(message: string, pointer = ''): ApiError {
  return new ApiError('invalid_data', `${pointer || 'body'}: ${message}`, {
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}
