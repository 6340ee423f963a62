import { isDeepStrictEqual } from 'node:util';

/** A path that leads nowhere in a payload. The message says where it stops. */
export class InvalidPathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidPathError';
  }
}

/** Names on the way into a JSON value; places of lists as decimal digits. */
export type PayloadPath = readonly string[];

/** No payload of the contract is nearly as deep. */
const MAX_DEPTH = 32;

/**
 * Reads a path: names joined by dots, `steps.0.status`, or a JSON pointer (RFC 6901), `/steps/0/status`, for names
 * that hold a dot.
 *
 * @throws InvalidPathError
 */
export function parsePath(text: string): PayloadPath {
  const isPointer = text.startsWith('/');
  const names = isPointer ? text.slice(1).split('/').map(unescapeName) : text.split('.');
  if (names.length > MAX_DEPTH) throw new InvalidPathError(`a path has at most ${MAX_DEPTH} names`);
  if (!isPointer && names.includes('')) throw new InvalidPathError('a path must not have empty names');
  return names;
}

/** The value at `path`, or undefined. */
export function valueAt(value: unknown, path: PayloadPath): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  // `Object.keys` would be exact but slow: the one member of a list that is no item is its length.
  const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  if (!isMember || (Array.isArray(value) && name === 'length')) return undefined;
  return valueAt((value as Record<string, unknown>)[name], rest);
}

/**
 * `value` with `inner` at `path`. Objects on the way are made where there is nothing; a list can grow by its next
 * place.
 *
 * @throws InvalidPathError where something that is neither object nor list stands in the way.
 */
export function withValueAt(value: unknown, path: PayloadPath, inner: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return inner;
  if (Array.isArray(value)) {
    const place = /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : Number.NaN;
    if (!(place <= value.length)) {
      throw new InvalidPathError(`the list has ${value.length} items, so there is no place \`${name}\``);
    }
    return value.toSpliced(place, 1, withValueAt(value[place], rest, inner));
  }
  if (value === undefined || value === null) return { [name]: withValueAt(undefined, rest, inner) };
  if (typeof value !== 'object')
    throw new InvalidPathError(`there is nothing below a plain value: \`${name}\``);
  const own = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  return { ...value, [name]: withValueAt(own, rest, inner) };
}

/** Whether a payload holds what a condition asks for. */
export type Condition = (payload: unknown) => boolean;

/**
 * Reads `path=value`. It holds where the value at the path is this text, or equals this JSON.
 *
 * @throws InvalidPathError
 */
export function parseCondition(text: string): Condition {
  const mark = text.indexOf('=');
  if (mark < 1) throw new InvalidPathError('must be `path=value`');
  const path = parsePath(text.slice(0, mark));
  const wanted = text.slice(mark + 1);
  const parsed = readJson(wanted);
  return (payload) => {
    const found = valueAt(payload, path);
    return found === wanted || (found !== undefined && isDeepStrictEqual(found, parsed));
  };
}

/** What a text on a command line means where `present` stands: a text in place of a text, else JSON if it is JSON. */
export function readText(text: string, present: unknown): unknown {
  if (typeof present === 'string') return text;
  const parsed = readJson(text);
  return parsed === undefined ? text : parsed;
}

/** Undefined when the text is no JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// RFC 6901 §4: `~1` before `~0`.
function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
