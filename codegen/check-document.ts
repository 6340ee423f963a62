import {
  ContractError,
  type Document,
  mediaTypes,
  operationObjects,
  resolveParameter,
  type Schema,
  schemaName,
  subschemas,
} from './document.ts';

/** Marks a text that is still missing. */
const PLACEHOLDER = 'TODO';

/** Keys whose values are data, not parts of the document. */
const DATA_KEYS = ['example', 'examples', 'enum', 'const', 'default', 'value'];

/** Throws ContractError unless every operation has a camelCase id, one tag, texts, and an example of each body. */
export function requireComplete(document: Document): void {
  const problems: string[] = [];
  for (const { operation, pointer } of operationObjects(document)) {
    if (operation.operationId === undefined) problems.push(`${pointer}: no operationId`);
    else if (!/^[a-z][A-Za-z0-9]*$/.test(operation.operationId)) {
      problems.push(`${pointer}: expected a camelCase operationId, got \`${operation.operationId}\``);
    }
    if (operation.tags?.length !== 1) problems.push(`${pointer}: expected exactly one tag`);
    if (!operation.summary) problems.push(`${pointer}: no summary`);
    if (!operation.description) problems.push(`${pointer}: no description`);
  }
  for (const { media, pointer } of mediaTypes(document)) {
    const count = Object.keys(media.examples ?? {}).length + (media.example === undefined ? 0 : 1);
    if (count === 0) problems.push(`${pointer}: no example`);
  }
  if (problems.length > 0) throw new ContractError('the contract is incomplete:', problems);
}

/** Pointers to the summaries and descriptions that are placeholders. */
export function findPlaceholders(node: unknown, pointer = '#'): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const isText = (key: string): boolean => key === 'summary' || key === 'description';
  return Object.entries(node).flatMap(([key, value]) => {
    if (isText(key) && typeof value === 'string')
      return value.trim() === PLACEHOLDER ? [`${pointer}/${key}`] : [];
    // The values of a property named `value` or `example` are schemas, not data.
    if (DATA_KEYS.includes(key) && !pointer.endsWith('/properties')) return [];
    return findPlaceholders(value, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  });
}

/**
 * Throws ContractError unless every array of a request has `maxItems`: a body of the permitted size could hold hundreds
 * of thousands of items otherwise, and the work for one request would have no bound.
 */
export function requireBoundedArrays(document: Document): void {
  const unbounded = new Set<string>();
  const visited = new Set<string>();
  const visit = (schema: Schema, pointer: string): void => {
    if (schema.$ref !== undefined) {
      if (visited.has(schema.$ref)) return;
      visited.add(schema.$ref);
      visit(document.components.schemas[schemaName(schema.$ref)] ?? {}, schema.$ref);
      return;
    }
    if ([schema.type].flat().includes('array') && schema.maxItems === undefined) unbounded.add(pointer);
    for (const [part, at] of subschemas(schema, pointer)) visit(part, at);
  };
  for (const { media, pointer, sent } of mediaTypes(document)) {
    if (sent === 'in') visit(media.schema ?? {}, `${pointer}/schema`);
  }
  for (const { operation, pointer, kind } of operationObjects(document)) {
    if (kind !== 'path') continue;
    for (const [index, parameter] of (operation.parameters ?? []).entries()) {
      visit(resolveParameter(document, parameter).schema ?? {}, `${pointer}/parameters/${index}/schema`);
    }
  }
  if (unbounded.size > 0) {
    const problems = [...unbounded].map((pointer) => `${pointer}: no maxItems`);
    throw new ContractError('every array of a request must have a bound:', problems);
  }
}
