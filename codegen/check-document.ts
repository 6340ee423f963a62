import { ContractError, type Document, mediaTypes, operationObjects } from './document.ts';

/** A text that nobody has written yet. */
const PLACEHOLDER = 'TODO';

/** Keys whose values are data, not document. */
const DATA_KEYS = ['example', 'examples', 'enum', 'const', 'default', 'value'];

/** Stops on what every operation must have: an id in camelCase, one tag, an example of each body. */
export function requireComplete(document: Document): void {
  const problems: string[] = [];
  for (const { operation, pointer } of operationObjects(document)) {
    if (operation.operationId === undefined) problems.push(`${pointer}: no operationId`);
    else if (!/^[a-z][A-Za-z0-9]*$/.test(operation.operationId)) {
      problems.push(`${pointer}: operationId \`${operation.operationId}\` is not camelCase`);
    }
    if (operation.tags?.length !== 1) problems.push(`${pointer}: exactly one tag is expected`);
    if (!operation.summary) problems.push(`${pointer}: no summary`);
    if (!operation.description) problems.push(`${pointer}: no description`);
  }
  for (const { media, pointer } of mediaTypes(document)) {
    const count = Object.keys(media.examples ?? {}).length + (media.example === undefined ? 0 : 1);
    if (count === 0) problems.push(`${pointer}: no example`);
  }
  if (problems.length > 0) throw new ContractError('the contract is incomplete:', problems);
}

/** Pointers of every summary and description that is still a placeholder. */
export function findPlaceholders(node: unknown, pointer = '#'): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const isText = (key: string): boolean => key === 'summary' || key === 'description';
  return Object.entries(node).flatMap(([key, value]) => {
    if (isText(key) && typeof value === 'string')
      return value.trim() === PLACEHOLDER ? [`${pointer}/${key}`] : [];
    // A property may be called `value` or `example`: then what it holds is a schema.
    if (DATA_KEYS.includes(key) && !pointer.endsWith('/properties')) return [];
    return findPlaceholders(value, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  });
}
