import { allSchemas, ContractError, type Document, operationObjects } from './document.ts';
import { formats } from './validators/formats.ts';

/** Keywords that every emitter gives meaning to. */
const EMITTED = [
  '$ref',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'oneOf',
  'anyOf',
  'discriminator',
  'enum',
  'const',
  'format',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
] as const;

/** Keywords for readers: kept in the document, without force in the validators. */
const ANNOTATIONS = [
  'title',
  'description',
  'deprecated',
  'default',
  'example',
  'examples',
  'readOnly',
  'writeOnly',
  'contentEncoding',
  'contentMediaType',
  'x-known-values',
  'x-branded',
] as const;

const METHODS = ['get', 'put', 'post', 'delete', 'patch'];

const OPERATION_KEYS = [
  'operationId',
  'tags',
  'summary',
  'description',
  'deprecated',
  'parameters',
  'requestBody',
  'responses',
  'security',
  'externalDocs',
];

export const emittedKeywords: ReadonlySet<string> = new Set(EMITTED);
const known: ReadonlySet<string> = new Set([...EMITTED, ...ANNOTATIONS]);

/**
 * Stops on anything that no emitter knows: a schema keyword, a format, a method, a key of an operation.
 * A keyword that is carried along without force would be a rule that nobody enforces.
 */
export function requireSupportedKeywords(document: Document): void {
  const problems: string[] = [];
  for (const { operation, pointer, method } of operationObjects(document)) {
    if (!METHODS.includes(method)) problems.push(`${pointer}: not a method that the generator knows`);
    for (const key of Object.keys(operation)) {
      if (!OPERATION_KEYS.includes(key)) problems.push(`${pointer}: unknown key \`${key}\``);
    }
  }
  for (const [schema, pointer] of allSchemas(document)) {
    if (typeof schema !== 'object' || schema === null) {
      problems.push(`${pointer}: a schema must be an object`);
      continue;
    }
    for (const keyword of Object.keys(schema)) {
      if (!known.has(keyword)) problems.push(`${pointer}: unknown keyword \`${keyword}\``);
    }
    if (schema.format !== undefined && !Object.hasOwn(formats, schema.format)) {
      problems.push(`${pointer}: unknown format \`${schema.format}\``);
    }
  }
  if (problems.length > 0)
    throw new ContractError('the contract says what the generator does not know:', problems);
}
