import { _ } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ContractError, type Document, type Schema, schemaName, subschemas } from '../document.ts';
import { emittedKeywords } from '../supported-keywords.ts';
import { dispatchByTag } from './dispatch-by-tag.ts';
import { formats } from './formats.ts';

/**
 * `as-written`: what we accept. `closed`: what we send, where an object schema with `properties` and without a
 * word on `additionalProperties` has no other properties, so a field that the contract does not declare is a fault.
 */
export type Openness = 'as-written' | 'closed';

/** Compiles the schemas of one document. */
export interface SchemaCompiler {
  /** `place` names a schema that is written in place, also in the fault, should it not compile. */
  compile(schema: Schema, openness: Openness, place: string): ValidateFunction;
}

/** The schema and everything written within it, up to references. */
function* writtenWithin(schema: Schema): Generator<Schema> {
  yield schema;
  for (const [inner] of subschemas(schema, '')) yield* writtenWithin(inner);
}

function isOpenByOmission(schema: Schema): boolean {
  return schema.properties !== undefined && schema.additionalProperties === undefined;
}

/** Names of the components that mean something else when closed: themselves or through what they refer to. */
function componentsChangedByClosing(document: Document): Set<string> {
  const parts = Object.entries(document.components.schemas).map(([name, schema]) => {
    const within = [...writtenWithin(schema)];
    const refs = within.flatMap(({ $ref }) => ($ref === undefined ? [] : [schemaName($ref)]));
    return { name, open: within.some(isOpenByOmission), refs };
  });
  const changed = new Set(parts.filter(({ open }) => open).map(({ name }) => name));
  for (let before = -1; before !== changed.size; ) {
    before = changed.size;
    for (const { name, refs } of parts) {
      if (refs.some((ref) => changed.has(ref))) changed.add(name);
    }
  }
  return changed;
}

interface Compiled {
  readonly document: Document;
  readonly componentId: (name: string, openness: Openness) => string;
}

/** A contract schema as Ajv compiles it: local references become ids, words for readers are dropped. */
function toAjvSchema(schema: Schema, openness: Openness, compiled: Compiled): Record<string, unknown> {
  if (schema.$ref !== undefined) return { $ref: compiled.componentId(schemaName(schema.$ref), openness) };
  const inner = (subschema: Schema): Record<string, unknown> => toAjvSchema(subschema, openness, compiled);
  const out: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (emittedKeywords.has(keyword) && keyword !== 'anyOf') out[keyword] = value;
  }
  if (schema.properties !== undefined) {
    const properties = Object.entries(schema.properties);
    out.properties = Object.fromEntries(properties.map(([name, property]) => [name, inner(property)]));
    if (openness === 'closed' && isOpenByOmission(schema)) out.additionalProperties = false;
  }
  if (typeof schema.additionalProperties === 'object') {
    out.additionalProperties = inner(schema.additionalProperties);
  }
  if (schema.items !== undefined) out.items = inner(schema.items);
  if (schema.oneOf !== undefined) out.oneOf = schema.oneOf.map(inner);
  // What we send fits one branch, so looking at its tag first is quicker; of what we accept every branch tells its fault.
  if (schema.anyOf !== undefined && openness === 'closed') {
    Object.assign(out, dispatchByTag(schema.anyOf, compiled.document, inner));
  } else if (schema.anyOf !== undefined) out.anyOf = schema.anyOf.map(inner);
  // Ajv takes no mapping: our branches tell themselves apart by a `const` or `enum` of the tag.
  if (schema.discriminator !== undefined) {
    out.discriminator = { propertyName: schema.discriminator.propertyName };
    // Ajv's discriminator looks at objects only; whatever is none would pass unseen.
    out.type ??= 'object';
  }
  return out;
}

function ajvOfOurDialect(coerceTypes: false | 'array'): Ajv2020 {
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
  // The dialect is on whatever one passes; no keyword of ours needs the book-keeping for `unevaluated…` and `$dynamic…`.
  ajv.opts.unevaluated = false;
  ajv.opts.dynamicRef = false;
  return ajv;
}

/**
 * A compiler over the components of a document, each registered under its own id, so that each becomes one
 * function however often it is referred to. `coerce`: strings become what the schema asks for (for queries).
 */
export function schemaCompiler(document: Document, { coerce }: { coerce: boolean }): SchemaCompiler {
  const changed = componentsChangedByClosing(document);
  const componentId = (name: string, openness: Openness): string =>
    openness === 'closed' && changed.has(name) ? `${name}-closed` : name;
  const ajv = ajvOfOurDialect(coerce ? 'array' : false);
  const register = (id: string, schema: Schema, openness: Openness): void => {
    ajv.addSchema({ $id: id, ...toAjvSchema(schema, openness, { document, componentId }) }, id);
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
        if (validate === undefined) throw new Error('it is not there');
        return validate as ValidateFunction;
      } catch (error) {
        throw new ContractError(
          `${place}: the schema \`${id}\` cannot be compiled: ${(error as Error).message}`,
        );
      }
    },
  };
}
