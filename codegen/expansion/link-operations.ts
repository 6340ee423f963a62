import type { Bundle } from '../bundle.ts';
import {
  ContractError,
  type Document,
  type OperationObject,
  operationObjects,
  resolveSchema,
  type Schema,
} from '../document.ts';

interface LinkedOperation {
  readonly id: string;
  readonly route: string;
  readonly operation: OperationObject;
}

/**
 * Adds `links` to the success responses of the operations in `x-links`. An entry names the path of a resource, and for
 * each operation that returns the resource, the pointer to its id. The response then links to every operation of that
 * path, and of longer ones without further parameters. Changes the document in place.
 *
 * @throws ContractError for an unknown path or operation, and for a pointer to nothing.
 */
export function linkOperations({ document, links }: Pick<Bundle, 'document' | 'links'>): void {
  const problems: string[] = [];
  const operations: LinkedOperation[] = operationObjects(document).flatMap(({ kind, route, operation }) =>
    kind === 'path' ? [{ id: operation.operationId ?? '', route, operation }] : [],
  );
  for (const [path, sources] of Object.entries(links)) {
    const targets = operations.filter(({ route }) => leadsTo(route, path));
    if (targets.length === 0) problems.push(`x-links ${path}: no operation has this path`);
    for (const [id, pointer] of Object.entries(sources)) {
      const source = operations.find((each) => each.id === id);
      const fault = faultOf(document, source, path, pointer);
      if (source === undefined || fault !== undefined) problems.push(`x-links ${path}: ${id} ${fault}`);
      else link(source, targets, parametersOf(path, pointer));
    }
  }
  if (problems.length > 0) throw new ContractError('the links of the contract are inconsistent:', problems);
}

/** Returns whether a route is the path itself, or is below it and has no parameters of its own. */
function leadsTo(route: string, path: string): boolean {
  return route === path || (route.startsWith(`${path}/`) && !route.slice(path.length).includes('{'));
}

function namesOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

/**
 * Returns the values of the path's parameters for a link. The last one is the id in the response, and the others are
 * those of the request.
 */
function parametersOf(path: string, pointer: string): Record<string, string> {
  const names = namesOf(path);
  return Object.fromEntries(
    names.map((name, index) => [
      name,
      index === names.length - 1 ? `$response.body#${pointer}` : `$request.path.${name}`,
    ]),
  );
}

function faultOf(
  document: Document,
  source: LinkedOperation | undefined,
  path: string,
  pointer: string,
): string | undefined {
  if (source === undefined) return 'is not an operation';
  const missing = namesOf(path)
    .slice(0, -1)
    .filter((name) => !namesOf(source.route).includes(name));
  if (missing.length > 0) return `has no parameter \`${missing.join('`, `')}\``;
  const schema = source.operation.responses?.['200']?.content?.['application/json']?.schema ?? {};
  return hasMember(document, schema, pointer.split('/').slice(1))
    ? undefined
    : `returns nothing at \`${pointer}\``;
}

/** Returns whether a value of the schema, or of a branch of it, can have a member at these steps. */
function hasMember(document: Document, schema: Schema, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return true;
  const { properties, items, oneOf, anyOf } = resolveSchema(document, schema);
  const member = /^\d+$/.test(step) ? items : properties?.[step];
  if (member !== undefined) return hasMember(document, member, rest);
  return [...(oneOf ?? []), ...(anyOf ?? [])].some((branch) => hasMember(document, branch, [step, ...rest]));
}

function link(
  { operation }: LinkedOperation,
  targets: readonly LinkedOperation[],
  parameters: Record<string, string>,
): void {
  const response = operation.responses?.['200'];
  if (response === undefined) return;
  response.links = { ...response.links };
  for (const { id } of targets) response.links[id] = { operationId: id, parameters };
}
