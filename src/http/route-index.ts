import createRouter from 'find-my-way';
import { ApiError } from '../errors.ts';
import type { Route } from './http-exchange.ts';
import type { Operation } from './operation.ts';

/** Finds the operation of a method and path; the time does not depend on the number of operations. */
export interface RouteIndex {
  /**
   * `/api/v1/…` means the same as `/v1/…`, and one trailing slash is accepted. Throws `invalid_data` for invalid
   * percent-encoding.
   */
  find(method: string, path: string): Route | undefined;
  /** The methods of this path; empty for an unknown path. */
  allowedMethods(path: string): readonly string[];
}

const ALIAS = '/api/v1/';
// Longer than any id, address or alias in the contract.
const MAX_PARAMETER_LENGTH = 2048;

const built = new WeakMap<readonly Operation[], RouteIndex>();

/** The radix index over `operations`, built once: servers of one process share it. */
export function createRouteIndex(operations: readonly Operation[]): RouteIndex {
  const index = built.get(operations) ?? buildRouteIndex(operations);
  built.set(operations, index);
  return index;
}

function buildRouteIndex(operations: readonly Operation[]): RouteIndex {
  const options = { caseSensitive: true, ignoreTrailingSlash: true, maxParamLength: MAX_PARAMETER_LENGTH };
  const byMethod = createRouter(options);
  // An index of paths only, used when no operation matches.
  const paths = createRouter(options);
  for (const [path, methods] of methodsByPath(operations)) paths.on('GET', toPattern(path), noop, methods);
  for (const operation of operations) {
    byMethod.on(operation.method as 'GET', toPattern(operation.path), noop, operation);
  }
  return {
    find(method, path) {
      const found = byMethod.find(method as 'GET', withoutAlias(path));
      if (found === null) {
        requireDecodable(path);
        return undefined;
      }
      return {
        operation: found.store as Operation,
        params: found.params as Record<string, string>,
      };
    },
    allowedMethods: (path) => (paths.find('GET', withoutAlias(path))?.store as string[] | undefined) ?? [],
  };
}

function methodsByPath(operations: readonly Operation[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of operations) methods.set(path, [...(methods.get(path) ?? []), method].sort());
  return methods;
}

// `/v1/wallets/{wallet_id}` -> `/v1/wallets/:wallet_id`
function toPattern(template: string): string {
  return template.replaceAll(/\{([^}]+)\}/g, ':$1');
}

function withoutAlias(path: string): string {
  return path.startsWith(ALIAS) ? path.slice('/api'.length) : path;
}

function requireDecodable(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw new ApiError('invalid_data', 'path: invalid percent-encoding', {
      data: { issues: [{ in: 'path', pointer: '', message: 'invalid percent-encoding' }] },
    });
  }
}

function noop(): void {}
