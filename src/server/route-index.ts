import { ApiError } from '../errors.ts';
import type { ValidateFunction } from '../generated/validate-function.ts';
import type { Route } from './request-state.ts';

/** An operation, as a row of a generated table: of the API or of the control plane. */
export interface Operation {
  readonly id: string;
  /** In upper case. */
  readonly method: string;
  /** A template, such as `/v1/wallets/{wallet_id}`. */
  readonly path: string;
  readonly successStatus: number;
  /** The media type of a success response that is a file; omitted for JSON. */
  readonly fileType?: string;
  readonly hasBody: boolean;
  readonly bodyRequired: boolean;
  /** The fields that a form may have; undefined if the body is always JSON. */
  readonly formFields?: readonly string[];
  /** The limit of the body's size; undefined for the general limit. */
  readonly maxBodyBytes?: number;
  /** Whether the operation changes nothing although its method is not GET. Undefined means false. */
  readonly isReadOnly?: boolean;
  readonly idempotent: boolean;
  readonly security: 'none' | 'app' | 'app-or-origin' | 'app-or-user' | 'oauth-client';
}

export interface RequestValidators {
  /** Validates `{path, query, headers}`. */
  readonly params: ValidateFunction;
  readonly body?: ValidateFunction;
}

/** Finds the operation for a method and a path. The time does not depend on the number of operations. */
export interface RouteIndex {
  /**
   * Returns the operation and its path parameters. `/api/v1/…` is an alias of `/v1/…`, and one trailing slash is
   * accepted. Throws `invalid_data` for invalid percent-encoding.
   */
  find(method: string, path: string): Route | undefined;
  /** Returns the methods that the path accepts; empty for an unknown path. */
  allowedMethods(path: string): readonly string[];
}

const ALIAS = '/api/v1/';
// Longer than any id, address or alias of the API.
const MAX_PARAMETER_LENGTH = 2048;

/** The branches after one segment of a path: the next segment is a literal or a parameter. */
interface Node<Value> {
  readonly literals: Map<string, Node<Value>>;
  parameter: Node<Value> | undefined;
  leaf: Leaf<Value> | undefined;
}

/** The end of a path: its value, and the names of its parameters. */
interface Leaf<Value> {
  readonly value: Value;
  readonly parameters: readonly string[];
}

const built = new WeakMap<readonly Operation[], RouteIndex>();

/** Returns the radix index over `operations`. It is built once, because the servers of one process share it. */
export function createRouteIndex(operations: readonly Operation[]): RouteIndex {
  const index = built.get(operations) ?? buildRouteIndex(operations);
  built.set(operations, index);
  return index;
}

function buildRouteIndex(operations: readonly Operation[]): RouteIndex {
  const byMethod = new Map<string, Node<Operation>>();
  // Used when no operation matches, to tell 404 from 405.
  const paths = emptyNode<string[]>();
  for (const [path, methods] of methodsByPath(operations)) insert(paths, path, methods);
  for (const operation of operations) {
    const root = byMethod.get(operation.method) ?? emptyNode<Operation>();
    byMethod.set(operation.method, root);
    insert(root, operation.path, operation);
  }
  return {
    find(method, path) {
      const root = byMethod.get(method);
      const segments = segmentsOf(path);
      const values: string[] = [];
      const leaf =
        root === undefined || segments === undefined ? undefined : search(root, segments, 1, values);
      if (leaf === undefined) return undefined;
      const params: Record<string, string> = {};
      for (const [at, name] of leaf.parameters.entries()) params[name] = values[at]!;
      return { operation: leaf.value, params };
    },
    allowedMethods(path) {
      const segments = segmentsOf(path);
      return segments === undefined ? [] : (search(paths, segments, 1, [])?.value ?? []);
    },
  };
}

function methodsByPath(operations: readonly Operation[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of operations) methods.set(path, [...(methods.get(path) ?? []), method].sort());
  return methods;
}

function emptyNode<Value>(): Node<Value> {
  return { literals: new Map(), parameter: undefined, leaf: undefined };
}

/** Adds a path. `template`: for example `/v1/wallets/{wallet_id}`. */
function insert<Value>(root: Node<Value>, template: string, value: Value): void {
  const parameters: string[] = [];
  let node = root;
  for (const segment of template.split('/').slice(1)) {
    const parameter = /^\{([^}]+)\}$/.exec(segment)?.[1];
    if (parameter === undefined) {
      const next = node.literals.get(segment) ?? emptyNode<Value>();
      node.literals.set(segment, next);
      node = next;
    } else {
      parameters.push(parameter);
      node.parameter ??= emptyNode<Value>();
      node = node.parameter;
    }
  }
  node.leaf = { value, parameters };
}

/**
 * Finds the end of the path whose segments begin at `at`. A literal takes precedence over a parameter. Appends the
 * parameters to `values`.
 */
function search<Value>(
  node: Node<Value>,
  segments: readonly string[],
  at: number,
  values: string[],
): Leaf<Value> | undefined {
  if (at === segments.length) return node.leaf;
  const segment = segments[at]!;
  const literal = node.literals.get(segment);
  const found = literal === undefined ? undefined : search(literal, segments, at + 1, values);
  if (found !== undefined) return found;
  if (node.parameter === undefined || segment.length > MAX_PARAMETER_LENGTH) return undefined;
  values.push(segment);
  const leaf = search(node.parameter, segments, at + 1, values);
  if (leaf === undefined) values.pop();
  return leaf;
}

/**
 * Returns the decoded segments of a path or a whole URL. The first segment is always empty. Returns undefined for a
 * target that is neither.
 */
function segmentsOf(path: string): string[] | undefined {
  const target = path.startsWith('/') ? path : pathOfUrl(path);
  if (target === undefined) return undefined;
  const isAlias = target.startsWith(ALIAS);
  const fragment = target.indexOf('#');
  const end = fragment === -1 ? target.length : fragment;
  const isSlashed = end > 1 && target.charCodeAt(end - 1) === SLASH;
  const segments = splitAt('/', target.slice(isAlias ? '/api'.length : 0, isSlashed ? end - 1 : end));
  return target.includes('%') ? segments.map(decode) : segments;
}

const SLASH = 0x2f;

/** Splits a string. HOT: `split` takes twice as long for a string that it has not split recently. */
function splitAt(separator: string, text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, from)) {
    parts.push(text.slice(from, at));
    from = at + 1;
  }
  parts.push(text.slice(from));
  return parts;
}

/** Returns the path of a whole URL, which RFC 9112 section 3.2.2 allows in place of a path. */
function pathOfUrl(url: string): string | undefined {
  return /^https?:\/\/[^/]*(\/.*)$/i.exec(url)?.[1];
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ApiError('invalid_data', 'path: invalid percent-encoding', {
      data: { issues: [{ in: 'path', pointer: '', message: 'invalid percent-encoding' }] },
    });
  }
}

/** Query parameters as they were sent. A parameter that is repeated or named `name[]` is a list. */
type Query = Record<string, string | string[]>;

const none: Query = Object.freeze({});

/** Parses the query of a request target. Invalid percent-encoding is kept unchanged, as browsers do. */
export function parseQuery(target: string): Query {
  const mark = target.indexOf('?');
  if (mark === -1 || mark === target.length - 1) return none;
  const query: Query = Object.create(null);
  for (const [sentName, value] of new URLSearchParams(target.slice(mark + 1))) {
    const isList = sentName.endsWith('[]');
    const name = isList ? sentName.slice(0, -2) : sentName;
    const before = query[name];
    if (before === undefined) query[name] = isList ? [value] : value;
    // A request head can hold thousands of values with one name. Copying the list for each of them would take quadratic
    // time.
    else if (Array.isArray(before)) before.push(value);
    else query[name] = [before, value];
  }
  return query;
}
