import type { OpenApiDocument } from './open-api.ts';
import type { DocumentOperation } from './read-operations.ts';

/** An operation with the values of its path parameters. */
export interface FoundOperation {
  readonly operation: DocumentOperation;
  readonly params: Readonly<Record<string, string>>;
}

export interface OperationIndex {
  find(method: string, path: string): FoundOperation | undefined;
  /** The methods of a path; empty for an unknown path. */
  methodsOf(path: string): string[];
}

interface Route {
  readonly operation: DocumentOperation;
  readonly pattern: RegExp;
  readonly names: readonly string[];
}

/**
 * Finds operations by path, with and without the base path of a server of the document. Paths without parameters come
 * first; among others, those whose parameters begin later.
 */
export function indexOperations(
  { servers = [] }: OpenApiDocument,
  operations: readonly DocumentOperation[],
): OperationIndex {
  const bases = new Set(['', ...servers.map(({ url }) => basePathOf(url))]);
  const rank = ({ path }: DocumentOperation): number => {
    const first = path.indexOf('{');
    return first === -1 ? Number.MAX_SAFE_INTEGER : first;
  };
  const routes = [...operations].sort((one, other) => rank(other) - rank(one)).map(routeOf);
  const matches = (path: string): { route: Route; values: RegExpExecArray }[] =>
    [...bases].flatMap((base) => {
      if (!path.startsWith(base)) return [];
      const rest = path.slice(base.length) || '/';
      return routes.flatMap((route) => {
        const values = route.pattern.exec(rest);
        return values === null ? [] : [{ route, values }];
      });
    });
  return {
    find(method, path) {
      const found = matches(path).find(({ route }) => route.operation.method === method);
      if (found === undefined) return undefined;
      const [, ...values] = found.values;
      const params = found.route.names.map((name, index) => [name, decoded(values[index] ?? '')]);
      return { operation: found.route.operation, params: Object.fromEntries(params) };
    },
    methodsOf: (path) => [...new Set(matches(path).map(({ route }) => route.operation.method))],
  };
}

/** A parameter is a part of a segment: `/files/{name}.json`. */
function routeOf(operation: DocumentOperation): Route {
  const names: string[] = [];
  const source = operation.path
    .split(/(\{[^{}]+\})/)
    .map((part) => {
      if (!part.startsWith('{')) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
      names.push(part.slice(1, -1));
      return '([^/]+?)';
    })
    .join('');
  return { operation, names, pattern: new RegExp(`^${source}/?$`) };
}

/** `https://api.example.com/v2/` -> `/v2`. Variables of a server are no path that is known. */
function basePathOf(url: string): string {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
  return path.includes('{') ? '' : path.replace(/\/$/, '');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
