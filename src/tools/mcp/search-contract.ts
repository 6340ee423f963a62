import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.ts';

/** The fields of an operation in a search result. */
interface FoundOperation {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: object;
}

interface OperationObject {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, MediaType>> }>>;
}

interface MediaType {
  readonly schema?: object;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

interface Described {
  readonly method: string;
  readonly path: string;
  readonly object: OperationObject;
  readonly components: Readonly<Record<string, Readonly<Record<string, Parameter>>>>;
}

const DOCUMENTS = ['openapi.json', 'control-plane.json'];
/** The maximum number of examples per result. More examples would hide the rest of the description. */
const MAX_EXAMPLES = 5;

/** Reads both OpenAPI documents and returns a search over the operations of the API and of the control plane. */
export function openContract(): Contract {
  const operations = DOCUMENTS.flatMap(readOperations);
  return {
    search: (text, limit) => search(operations, text, limit),
    describe(id) {
      const found = operations.find(({ object }) => object.operationId === id);
      return found === undefined ? undefined : describe(found);
    },
  };
}

export interface Contract {
  /** Returns the operations that mention the most words of `text`, best first. */
  search(text: string, limit: number): FoundOperation[];
  /** Describes an operation: parameters, examples and error codes. Returns undefined for an unknown operation. */
  describe(id: string): object | undefined;
}

function readOperations(name: string): Described[] {
  const document = JSON.parse(readFileSync(join(packageRoot(), 'openapi', name), 'utf8')) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
    readonly components: Described['components'];
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, object]) => object.operationId !== undefined)
      .map(([method, object]) => ({
        ...{ method: method.toUpperCase(), path, object, components: document.components },
      })),
  );
}

function search(operations: readonly Described[], text: string, limit: number): FoundOperation[] {
  const words = text
    .toLowerCase()
    .split(/[^a-z0-9_]+/)
    .filter((word) => word !== '' && !stopWords.has(word));
  return operations
    .map((operation) => ({ operation, score: scoreOf(operation, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ operation: { method, path, object } }) => ({
      ...{ operation: object.operationId, method, path, summary: object.summary ?? '' },
    }));
}

const stopWords = new Set([
  'a',
  'an',
  'and',
  'by',
  'for',
  'in',
  'of',
  'on',
  'or',
  'per',
  'the',
  'to',
  'with',
]);

/** Splits a string or an id into words, in lower case and without the `s` of plurals. */
function wordsIn(text: string): Set<string> {
  const spaced = text.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  return new Set(spaced.split(/[^a-z0-9]+/).map(singular));
}

function singular(word: string): string {
  return word.length > 3 ? word.replace(/(?:ies|y|s)$/, '') : word;
}

/** Scores an operation. A match that covers most of the id counts most, and a word in the description least. */
function scoreOf({ path, object }: Described, words: readonly string[]): number {
  const wanted = words.flatMap((word) => word.split('_')).map(singular);
  const exact = words.includes(object.operationId.toLowerCase()) ? 1 : 0;
  const id = wordsIn(object.operationId);
  const inId = Math.max(exact, wanted.filter((word) => id.has(word)).length / id.size);
  const texts: readonly [string, number][] = [
    [object.summary ?? '', 4],
    [`${path} ${object.tags?.join(' ')}`, 3],
    [object.description ?? '', 1],
  ];
  const inTexts = texts.map(([text, weight]) => {
    const found = wordsIn(text);
    return weight * wanted.filter((word) => found.has(word)).length;
  });
  // An operation that contains all words ranks above an operation that has one word in a better place.
  const everything = wordsIn([object.operationId, ...texts.map(([text]) => text)].join(' '));
  const anywhere = wanted.filter((word) => everything.has(word)).length;
  return inTexts.reduce((sum, score) => sum + score, 20 * inId + 5 * anywhere);
}

function describe({ method, path, object, components }: Described): object {
  const parameters = (object.parameters ?? []).map(({ $ref, ...own }) =>
    $ref === undefined ? own : (components.parameters?.[$ref.split('/').at(-1) ?? ''] ?? own),
  );
  const body = object.requestBody?.content['application/json'];
  return {
    operation: object.operationId,
    method,
    path,
    summary: object.summary,
    description: object.description,
    parameters: parameters.map(({ name, in: place, required = false, description, schema }) => ({
      ...{ name, in: place, required, description, schema },
    })),
    body_examples: examplesOf(body),
    responses: Object.entries(object.responses).map(([status, { content }]) => ({
      status,
      examples: examplesOf(content?.['application/json']).slice(0, status.startsWith('2') ? 1 : MAX_EXAMPLES),
    })),
  };
}

function examplesOf(media: MediaType | undefined): unknown[] {
  return Object.values(media?.examples ?? {})
    .slice(0, MAX_EXAMPLES)
    .map(({ value }) => value);
}
