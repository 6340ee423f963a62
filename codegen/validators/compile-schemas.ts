import { _, type CodeKeywordDefinition, stringify } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ContractError, type Document, type Schema, schemaName, subschemas } from '../document.ts';
import { emittedKeywords } from '../supported-keywords.ts';
import { dispatchByTag } from './dispatch-by-tag.ts';
import { formats } from './formats.ts';

/**
 * Requests use `as-written`. Responses and webhooks use `closed`: object schemas with `properties` but without
 * `additionalProperties` then allow no undeclared properties.
 */
export type Openness = 'as-written' | 'closed';

/** Compiles the schemas of one document. */
export interface SchemaCompiler {
  /** @param place names an inline schema, also in the error when it does not compile. */
  compile(schema: Schema, openness: Openness, place: string): ValidateFunction;
}

/** Yields the schema and all its inline subschemas, without following references. */
function* writtenWithin(schema: Schema): Generator<Schema> {
  yield schema;
  for (const [inner] of subschemas(schema, '')) yield* writtenWithin(inner);
}

function isOpenByOmission(schema: Schema): boolean {
  return schema.properties !== undefined && schema.additionalProperties === undefined;
}

/** Returns the names of the components that differ when closed, directly or through their references. */
function componentsChangedByClosing(document: Document): Set<string> {
  const parts = Object.entries(document.components.schemas).map(([name, schema]) => {
    const within = [...writtenWithin(schema)];
    const refs = within.flatMap(({ $ref }) => ($ref === undefined ? [] : [schemaName($ref)]));
    return { name, open: within.some(isOpenByOmission), refs };
  });
  const changed = new Set(parts.filter(({ open }) => open).map(({ name }) => name));
  for (let previousSize = -1; previousSize !== changed.size; ) {
    previousSize = changed.size;
    for (const { name, refs } of parts) {
      if (refs.some((ref) => changed.has(ref))) changed.add(name);
    }
  }
  return changed;
}

interface Compiled {
  readonly document: Document;
  readonly coerce: boolean;
  readonly componentId: (name: string, openness: Openness) => string;
}

/** Converts a contract schema for Ajv. References become ids, and annotations are dropped. */
function toAjvSchema(schema: Schema, openness: Openness, compiled: Compiled): Record<string, unknown> {
  if (schema.$ref !== undefined) return { $ref: compiled.componentId(schemaName(schema.$ref), openness) };
  const inner = (subschema: Schema): Record<string, unknown> => toAjvSchema(subschema, openness, compiled);
  const out: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (emittedKeywords.has(keyword) && keyword !== 'anyOf') out[keyword] = value;
  }
  if (schema['x-format'] !== undefined) {
    out.format = schema['x-format'];
    delete out['x-format'];
  }
  if (schema.properties !== undefined) {
    const properties = Object.entries(schema.properties);
    out.properties = Object.fromEntries(properties.map(([name, property]) => [name, inner(property)]));
    if (openness === 'closed' && isOpenByOmission(schema)) out.additionalProperties = false;
    if (compiled.coerce) Object.assign(out, integerTexts(properties));
  }
  if (typeof schema.additionalProperties === 'object') {
    out.additionalProperties = inner(schema.additionalProperties);
  }
  if (schema.items !== undefined) out.items = inner(schema.items);
  if (schema.oneOf !== undefined) out.oneOf = schema.oneOf.map(inner);
  // A response matches one branch, so it is faster to select the branch by its tag. For requests, `anyOf` reports the
  // faults of every branch.
  if (schema.anyOf !== undefined && openness === 'closed') {
    Object.assign(out, dispatchByTag(schema.anyOf, compiled.document, inner));
  } else if (schema.anyOf !== undefined) out.anyOf = schema.anyOf.map(inner);
  // Ajv does not support `mapping`, so the branches declare the tag with `const` or `enum`.
  if (schema.discriminator !== undefined) {
    out.discriminator = { propertyName: schema.discriminator.propertyName };
    // Ajv's discriminator ignores values that are not objects, so the type must be checked as well.
    out.type ??= 'object';
  }
  return out;
}

/**
 * Checks the text of integers before Ajv coerces it. Ajv accepts everything that `Number` reads: `Infinity`, `0x10`,
 * `1e1`, ` 1`. The check works because Ajv applies `allOf` before `properties`.
 */
function integerTexts(properties: readonly (readonly [string, Schema])[]): object {
  const integers = properties.filter(([, { type }]) => type === 'integer');
  if (integers.length === 0) return {};
  const text = { format: 'integer-text' };
  // A list with one element is coerced as well, for example `limit[]=1`.
  const checked = integers.map(([name]) => [name, { ...text, items: text }] as const);
  return { allOf: [{ properties: Object.fromEntries(checked) }] };
}

/**
 * Makes the errors of the keyword `required` name all required properties. Compiled code stops at the first one that
 * is missing, which keeps errors few; the server then looks for the others.
 */
function nameRequired(ajv: Ajv2020): void {
  const rule = ajv.RULES.all.required;
  if (typeof rule !== 'object') throw new Error('Ajv has no keyword `required`');
  const definition = rule.definition as CodeKeywordDefinition & typeof rule.definition;
  // In place, because a keyword that is added again is checked after all others.
  rule.definition = {
    ...definition,
    error: {
      message: definition.error?.message ?? 'is required',
      params: ({ params, schema }) =>
        _`{missingProperty: ${params.missingProperty}, required: ${stringify(schema)}}`,
    },
  };
}

function createAjv(coerceTypes: false | 'array'): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    discriminator: true,
    inlineRefs: false,
    validateSchema: false,
    coerceTypes,
    formats,
    code: { source: true, esm: true, formats: _`formats` },
  });
  // Ajv2020 enables both regardless of its options. The contract uses neither `unevaluated…` nor `$dynamic…`.
  ajv.opts.unevaluated = false;
  ajv.opts.dynamicRef = false;
  nameRequired(ajv);
  return ajv;
}

/**
 * Compiles the schemas of a document. Each component is registered under its own id and compiled to one function,
 * regardless of the number of references. `coerce` converts strings to the schema's type, for queries.
 */
export function schemaCompiler(document: Document, { coerce }: { coerce: boolean }): SchemaCompiler {
  const changed = componentsChangedByClosing(document);
  const componentId = (name: string, openness: Openness): string =>
    openness === 'closed' && changed.has(name) ? `${name}-closed` : name;
  const ajv = createAjv(coerce ? 'array' : false);
  const register = (id: string, schema: Schema, openness: Openness): void => {
    ajv.addSchema({ $id: id, ...toAjvSchema(schema, openness, { document, coerce, componentId }) }, id);
  };
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    register(name, schema, 'as-written');
    if (changed.has(name)) register(`${name}-closed`, schema, 'closed');
  }
  const places = new Map<string, number>();
  return {
    compile(schema, openness, place) {
      let id: string;
      if (schema.$ref !== undefined) {
        id = componentId(schemaName(schema.$ref), openness);
      } else {
        const slug = place.replaceAll(/[^A-Za-z0-9]+/g, '-');
        const count = (places.get(slug) ?? 0) + 1;
        places.set(slug, count);
        id = `inline-${slug}${count === 1 ? '' : `-${count}`}`;
        register(id, schema, openness);
      }
      try {
        const validate = ajv.getSchema(id);
        if (validate === undefined) throw new Error('expected a registered schema');
        return validate as ValidateFunction;
      } catch (error) {
        throw new ContractError(
          `${place}: the schema \`${id}\` cannot be compiled: ${(error as Error).message}`,
        );
      }
    },
  };
}
