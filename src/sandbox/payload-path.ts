import { isDeepStrictEqual } from 'node:util';

/** The path is malformed or does not exist in the payload. */
export class InvalidPathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidPathError';
  }
}

/** Member names and list indexes that lead into a JSON value. */
export type PayloadPath = readonly string[];

/** Far deeper than any payload of the contract. */
const MAX_DEPTH = 32;

/**
 * Parses a path: names joined by dots (`steps.0.status`), or a JSON pointer (RFC 6901, `/steps/0/status`) for names
 * that contain a dot.
 *
 * @throws InvalidPathError
 */
export function parsePath(text: string): PayloadPath {
  const isPointer = text.startsWith('/');
  const names = isPointer ? text.slice(1).split('/').map(unescapeName) : text.split('.');
  if (names.length > MAX_DEPTH) {
    throw new InvalidPathError(`expected a path of at most ${MAX_DEPTH} names, got ${names.length}`);
  }
  if (!isPointer && names.includes('')) throw new InvalidPathError('expected a path without empty names');
  return names;
}

/** The value at `path`; undefined when it does not exist. */
export function valueAt(value: unknown, path: PayloadPath): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  // `length` is the only own property of an array that is not an element; checking it is faster than `Object.keys`.
  const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  if (!isMember || (Array.isArray(value) && name === 'length')) return undefined;
  return valueAt((value as Record<string, unknown>)[name], rest);
}

/**
 * Returns a copy of `value` with `inner` at `path`. Creates missing objects along the path, and missing lists
 * at index 0; a list may grow by one element.
 *
 * @throws InvalidPathError when the path leads through a scalar or past the end of a list.
 */
export function withValueAt(value: unknown, path: PayloadPath, inner: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return inner;
  if (Array.isArray(value)) {
    const index = /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : Number.NaN;
    if (!(index <= value.length)) {
      throw new InvalidPathError(`expected a list index of at most ${value.length}, got \`${name}\``);
    }
    return value.toSpliced(index, 1, withValueAt(value[index], rest, inner));
  }
  if (value === undefined || value === null) {
    const first = withValueAt(undefined, rest, inner);
    return name === '0' ? [first] : { [name]: first };
  }
  if (typeof value !== 'object')
    throw new InvalidPathError(`expected an object or list that contains \`${name}\`, got a plain value`);
  const own = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  return { ...value, [name]: withValueAt(own, rest, inner) };
}

/** Whether a payload satisfies a condition. */
export type Condition = (payload: unknown) => boolean;

/**
 * Parses `path=value`. The condition is satisfied when the value at the path equals `value` as text or as JSON.
 *
 * @throws InvalidPathError
 */
export function parseCondition(text: string): Condition {
  const mark = text.indexOf('=');
  if (mark < 1) throw new InvalidPathError('expected `path=value`');
  const path = parsePath(text.slice(0, mark));
  const wanted = text.slice(mark + 1);
  const parsed = readJson(wanted);
  return (payload) => {
    const found = valueAt(payload, path);
    return found === wanted || (found !== undefined && isDeepStrictEqual(found, parsed));
  };
}

/** The value of a command-line text that replaces `current`: text if `current` is a string, otherwise JSON if valid. */
export function readText(text: string, current: unknown): unknown {
  if (typeof current === 'string') return text;
  const parsed = readJson(text);
  return parsed === undefined ? text : parsed;
}

/** Undefined when the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// RFC 6901 §4: replace `~1` before `~0`.
function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
