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

/** @throws ContractError unless every operation has a camelCase id, one tag, texts, and an example of each body. */
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

/** Returns pointers to the summaries and descriptions that are placeholders. */
export function findPlaceholders(node: unknown, pointer = '#'): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const isText = (key: string): boolean => key === 'summary' || key === 'description';
  return Object.entries(node).flatMap(([key, value]) => {
    if (isText(key) && typeof value === 'string')
      return value.trim() === PLACEHOLDER ? [`${pointer}/${key}`] : [];
    // Below `properties`, `value` and `example` are names of properties, whose values are schemas instead of data.
    if (DATA_KEYS.includes(key) && !pointer.endsWith('/properties')) return [];
    return findPlaceholders(value, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  });
}

// Formats of texts with a maximum length. `date-time`, `email` and `uri` have none.
const BOUNDED_FORMATS = ['date', 'uuid', 'cuid2', 'user-did'];

/**
 * Checks the bounds of requests. Without them, a body of the permitted size could contain hundreds of thousands of
 * items, or a name of a megabyte, which is slow to compare, to store and to log.
 *
 * CHOICE: the maximum length of a text is that of the protocol behind it, if it has one (254 for an email address,
 * 2,048 for a URL, the largest transaction of a chain). Otherwise it is at least twice the length that is used in
 * practice. Ids have 256, names of persons and businesses 1,024, explanations 4,096, tokens and signatures 16,384. A
 * text that only the size of the body limits has that maximum.
 *
 * @throws ContractError unless every array of a request has `maxItems` and every text a maximum length.
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
    if ([schema.type].flat().includes('string') && !isBounded(schema)) {
      problems.add(`${pointer}: no maxLength`);
    }
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
  if (problems.size > 0) throw new ContractError('every part of a request must have a bound:', [...problems]);
}

/** Returns whether the schema limits the length of texts. */
function isBounded(schema: Schema): boolean {
  return (
    schema.maxLength !== undefined ||
    schema.enum !== undefined ||
    schema.const !== undefined ||
    BOUNDED_FORMATS.includes(schema['x-format'] ?? schema.format ?? '') ||
    (typeof schema.pattern === 'string' && isBoundedPattern(schema.pattern))
  );
}

/** Returns whether a pattern matches only the whole text, and has no unlimited repetition. */
function isBoundedPattern(pattern: string): boolean {
  const plain = pattern.replaceAll(/\\./g, 'x').replaceAll(/\[[^\]]*\]/g, 'x');
  const inGroups = plain.replaceAll(/\([^()]*\)/g, '');
  return /^\^.*\$$/.test(plain) && !/[*+]|\{\d+,\}/.test(plain) && !inGroups.includes('|');
}
