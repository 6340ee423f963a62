import { _, type AnySchemaObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { UnmeasurableError } from '../start-error.ts';
import { discriminatorRules } from './discriminators.ts';
import { formats } from './formats.ts';
import type { OpenApiDocument } from './open-api.ts';
import { type DocumentOperation, isJson } from './read-operations.ts';

const DOCUMENT = 'urn:custos:document';

/** The code of the validators of a document, which `loadValidators` runs. `schemas`: exported name by pointer. */
export interface CompiledDocument {
  /** Of parameters: coerces texts. */
  readonly parameters: CompiledPart;
  /** Of bodies: coerces nothing. */
  readonly bodies: CompiledPart;
}

export interface CompiledPart {
  readonly code: string;
  readonly names: Readonly<Record<string, string>>;
}

/**
 * Compiles the schemas of all parameters and JSON bodies.
 *
 * @throws UnmeasurableError that names the place of a schema that cannot be compiled.
 */
export function compileDocument(
  document: OpenApiDocument,
  operations: readonly DocumentOperation[],
): CompiledDocument {
  const parameters = operations.flatMap((operation) =>
    operation.parameters.flatMap(({ node, pointer }) =>
      node.schema === undefined ? [] : [`${pointer}/schema`],
    ),
  );
  const bodies = operations.flatMap(({ body, responses }) =>
    [...(body?.content ?? []), ...[...responses.values()].flat()]
      .filter(({ node }) => node.schema !== undefined && isJson(node.type))
      .map(({ pointer }) => `${pointer}/schema`),
  );
  return {
    parameters: compilePart(document, parameters, 'array'),
    bodies: compilePart(document, bodies, false),
  };
}

function compilePart(
  document: OpenApiDocument,
  pointers: readonly string[],
  coerceTypes: false | 'array',
): CompiledPart {
  const ajv = createAjv(document, coerceTypes);
  const names: Record<string, string> = {};
  const ids: Record<string, string> = {};
  for (const pointer of new Set(pointers)) {
    const name = `v${Object.keys(names).length}`;
    const $id = `urn:custos:${name}`;
    try {
      ajv.addSchema({ $id, $ref: `${DOCUMENT}#${fragmentOf(pointer)}` });
      ajv.getSchema($id);
    } catch (cause) {
      throw new UnmeasurableError(`the schema #${pointer} cannot be compiled: ${(cause as Error).message}`, {
        cause,
      });
    }
    names[pointer] = name;
    ids[name] = $id;
  }
  return { code: standaloneCode.default(ajv, ids), names };
}

/** The whole document is one schema, so that references lead to where they point. */
function createAjv(document: OpenApiDocument, coerceTypes: false | 'array'): Ajv2020 {
  const ajv = new Ajv2020({
    // Documents have keywords and formats of their own, which JSON Schema ignores.
    strict: false,
    logger: false,
    validateSchema: false,
    validateFormats: true,
    allErrors: false,
    coerceTypes,
    formats,
    code: { source: true, formats: _`formats` },
  });
  ajv.addKeyword({
    keyword: 'discriminator',
    macro: (_value: unknown, schema: AnySchemaObject) => discriminatorRules(document, schema),
  });
  ajv.addSchema({ ...document, $id: DOCUMENT });
  return ajv;
}

/** A pointer as the fragment of a URL. */
function fragmentOf(pointer: string): string {
  return pointer
    .split('/')
    .map((step) => encodeURIComponent(step))
    .join('/');
}
