import { locate, type OpenApiDocument } from './open-api.ts';

interface Branch {
  readonly $ref?: string;
  readonly properties?: Readonly<
    Record<string, { readonly const?: unknown; readonly enum?: readonly unknown[] }>
  >;
}

interface Discriminated {
  readonly oneOf?: readonly Branch[];
  readonly anyOf?: readonly Branch[];
  readonly discriminator?: {
    readonly propertyName?: string;
    readonly mapping?: Readonly<Record<string, string>>;
  };
}

/**
 * What a discriminator demands of a value (OpenAPI 3.1, section 4.8.25): the property, one of the known values, and the
 * schema that this value names. Without `oneOf` and `anyOf` it demands nothing, because only the schemas that extend
 * this one know the values.
 */
export function discriminatorRules(document: OpenApiDocument, schema: object): object {
  const { oneOf, anyOf, discriminator: { propertyName, mapping = {} } = {} } = schema as Discriminated;
  const branches = oneOf ?? anyOf;
  if (branches === undefined || propertyName === undefined) return {};
  const byValue = new Map<unknown, string | undefined>();
  for (const [value, target] of Object.entries(mapping)) byValue.set(value, referenceOf(target));
  const mapped = new Set(byValue.values());
  for (const branch of branches) {
    if (branch.$ref !== undefined && mapped.has(branch.$ref)) continue;
    for (const value of valuesOf(document, branch, propertyName)) byValue.set(value, branch.$ref);
  }
  return {
    type: 'object',
    required: [propertyName],
    properties: { [propertyName]: { enum: [...byValue.keys()] } },
    allOf: [...byValue].flatMap(([value, target]) => {
      const condition = { required: [propertyName], properties: { [propertyName]: { const: value } } };
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, not a promise
      return target === undefined ? [] : [{ if: condition, then: { $ref: target } }];
    }),
  };
}

/** A mapping names a schema, or refers to it. */
function referenceOf(target: string): string {
  return /[#/]/.test(target) ? target : `#/components/schemas/${target}`;
}

/** The values that a branch declares for the property; without any, the name of its schema. */
function valuesOf(document: OpenApiDocument, branch: Branch, property: string): unknown[] {
  const { $ref: reference } = branch;
  const schema = reference?.startsWith('#') ? locate<Branch>(document, reference.slice(1))?.node : branch;
  const { const: constant, enum: values } = schema?.properties?.[property] ?? {};
  if (constant !== undefined) return [constant];
  if (values !== undefined) return [...values];
  return reference === undefined ? [] : [reference.split('/').at(-1) ?? ''];
}
