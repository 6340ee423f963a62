import { ConfigError } from '../../config.ts';
import { type OperationDescriptor, operations } from '../../generated/operations.ts';
import { operations as controlOperations } from '../../sandbox/generated/operations.ts';
import { nearestName } from '../../sandbox/why/nearest.ts';

/** An operation of the API, or of the control plane of a sandbox. */
export type CallableOperation = Omit<OperationDescriptor, 'id'> & { readonly id: string };

const MAX_NEAR = 5;

const callable: ReadonlyMap<string, CallableOperation> = new Map(
  [
    ...Object.values<CallableOperation>(operations),
    ...Object.values<CallableOperation>(controlOperations),
  ].map((operation) => [operation.id, operation]),
);

/** Every operation that can be called, by id. */
export function listOperations(): readonly CallableOperation[] {
  return [...callable.values()];
}

/** @throws ConfigError that names similar operations. */
export function findOperation(id: string): CallableOperation {
  const found = callable.get(id);
  if (found !== undefined) return found;
  const near = similarOperations(id);
  const advice =
    near.length === 0
      ? 'see /docs for all of them'
      : `did you mean ${near.map((name) => `\`${name}\``).join(', ')}?`;
  throw new ConfigError('invalid arguments:', [`no operation is called \`${id}\`; ${advice}`]);
}

/** A misspelled name first, then names that contain the text. */
function similarOperations(text: string): string[] {
  const ids = [...callable.keys()];
  const nearest = nearestName(text, ids);
  const containing = ids.filter((id) => text.length > 2 && id.toLowerCase().includes(text.toLowerCase()));
  return [...new Set([...(nearest === undefined ? [] : [nearest]), ...containing])].slice(0, MAX_NEAR);
}

/** The names in braces, in order. */
export function pathParametersOf({ path }: Pick<CallableOperation, 'path'>): string[] {
  return [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name);
}
