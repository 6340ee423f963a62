import {
  ContractError,
  type Document,
  mediaTypes,
  operationObjects,
  pointerStep,
  resolveParameter,
  resolveSchema,
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

// `wallet_id`, `intentId`, `automation_ids`.
const ID_NAME = /(?:^|_)ids?$|[a-z]Ids?$/;
const BOUNDED_PATTERN = /^\^(?!.*(?:[*+]|\{\d+,\})).*\$$/;

/**
 * Throws ContractError unless every array of a request has `maxItems` and every id in a body `maxLength`. A body of the
 * permitted size could hold hundreds of thousands of items otherwise, or an id of a megabyte: MikroORM takes more than a
 * second to build a query with one.
 */
export function requireBounds(document: Document): void {
  const problems = new Set<string>();
  const visited = new Set<string>();
  const visit = (schema: Schema, pointer: string): void => {
    if (schema.$ref !== undefined) {
      if (visited.has(schema.$ref)) return;
      visited.add(schema.$ref);
      visit(document.components.schemas[schemaName(schema.$ref)] ?? {}, schema.$ref);
      return;
    }
    if ([schema.type].flat().includes('array') && schema.maxItems === undefined) {
      problems.add(`${pointer}: no maxItems`);
    }
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (ID_NAME.test(name)) requireBoundedText(property, `${pointer}/properties${pointerStep(name)}`);
    }
    for (const [part, at] of subschemas(schema, pointer)) visit(part, at);
  };
  const requireBoundedText = (schema: Schema, pointer: string): void => {
    if (schema.$ref !== undefined) {
      requireBoundedText(resolveSchema(document, schema), schema.$ref);
      return;
    }
    if ([schema.type].flat().includes('string') && !isBounded(schema))
      problems.add(`${pointer}: no maxLength`);
    if (schema.properties !== undefined) return;
    for (const [part, at] of subschemas(schema, pointer)) requireBoundedText(part, at);
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
  if (problems.size > 0) throw new ContractError('every part of a request must have a bound:', [...problems]);
}

/** Whether only texts of a limited length are valid. Every format of an id has such a check. */
function isBounded(schema: Schema): boolean {
  const limits = ['maxLength', 'enum', 'const', 'format', 'x-format'];
  return limits.some((keyword) => keyword in schema) || BOUNDED_PATTERN.test(String(schema.pattern));
}
