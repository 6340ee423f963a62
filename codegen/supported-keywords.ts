import { allSchemas, ContractError, type Document, operationObjects, type Schema } from './document.ts';
import { ownFormats, standardFormats } from './validators/formats.ts';

/** Keywords that every emitter supports. */
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
  'x-format',
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

/** Annotation keywords, which are kept in the document and ignored by the validators. */
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
  'x-secret',
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
  'x-max-body-bytes',
  'x-read-only',
];

export const emittedKeywords: ReadonlySet<string> = new Set(EMITTED);
const known: ReadonlySet<string> = new Set([...EMITTED, ...ANNOTATIONS]);

/**
 * @throws ContractError for an unsupported schema keyword, format, method or operation key. If it were ignored, a
 * documented rule would not be enforced.
 */
export function requireSupportedKeywords(document: Document): void {
  const problems: string[] = [];
  for (const { operation, pointer, method } of operationObjects(document)) {
    if (!METHODS.includes(method)) problems.push(`${pointer}: unsupported method \`${method}\``);
    for (const key of Object.keys(operation)) {
      if (!OPERATION_KEYS.includes(key)) problems.push(`${pointer}: unknown key \`${key}\``);
    }
  }
  for (const [schema, pointer] of allSchemas(document)) {
    if (typeof schema !== 'object' || schema === null) {
      problems.push(`${pointer}: expected an object as schema`);
      continue;
    }
    for (const keyword of Object.keys(schema)) {
      if (!known.has(keyword)) problems.push(`${pointer}: unknown keyword \`${keyword}\``);
    }
    const problem = formatProblem(schema);
    if (problem !== undefined) problems.push(`${pointer}: ${problem}`);
  }
  if (problems.length > 0)
    throw new ContractError('the contract uses features that the generator does not support:', problems);
}

/**
 * Returns the fault in a schema's formats, if there is one. `format` is for formats that every tool knows. Formats that
 * only this contract defines are in `x-format`.
 */
function formatProblem({ format, 'x-format': own }: Schema): string | undefined {
  if (own !== undefined && !Object.hasOwn(ownFormats, own)) return `unknown x-format \`${own}\``;
  const expected = own?.startsWith('unix-') ? 'int64' : undefined;
  if (own !== undefined) {
    return format === expected
      ? undefined
      : `x-format \`${own}\` needs ${expected === undefined ? 'no format' : `format \`${expected}\``} beside it`;
  }
  return format === undefined || Object.hasOwn(standardFormats, format)
    ? undefined
    : `unknown format \`${format}\``;
}
