import {
  allSchemas,
  ContractError,
  type Document,
  resolveSchema,
  type Schema,
  schemaName,
} from './document.ts';

/** Keywords under which a branch can be put together from other schemas. */
const COMPOSITIONS = ['allOf', 'oneOf', 'anyOf'] as const;

/**
 * The values that a schema allows a property, from `const` and `enum`, through references and compositions.
 * Undefined where the property is not limited to strings known in advance.
 */
function allowedValues(
  document: Document,
  schema: Schema,
  property: string,
  seen: ReadonlySet<Schema> = new Set(),
): string[] | undefined {
  const resolved = resolveSchema(document, schema);
  if (seen.has(resolved)) return undefined;
  const declared = resolved.properties?.[property];
  if (declared !== undefined) {
    const { const: constant, enum: values } = resolveSchema(document, declared);
    const allowed = constant === undefined ? values : [constant];
    return allowed?.every((value) => typeof value === 'string') ? allowed : undefined;
  }
  for (const keyword of COMPOSITIONS) {
    const parts = ((resolved[keyword] ?? []) as Schema[]).map((part) =>
      allowedValues(document, part, property, new Set([...seen, resolved])),
    );
    // One part of `allOf` may declare the property for all of them; every alternative must declare its own.
    const found = parts.filter((values) => values !== undefined);
    if (found.length > 0 && (keyword === 'allOf' || found.length === parts.length)) return found.flat();
  }
  return undefined;
}

/** Value of the property -> reference to the branch that allows it. Adds to `problems` what stands against it. */
function deriveMapping(
  document: Document,
  schema: Schema,
  property: string,
  problems: string[],
): Record<string, string> {
  const mapping: Record<string, string> = {};
  const branches = schema.oneOf ?? schema.anyOf ?? [];
  if (branches.length === 0) problems.push('expected `oneOf` or `anyOf` beside the discriminator');
  for (const [index, branch] of branches.entries()) {
    if (branch.$ref === undefined) {
      problems.push(`expected a reference as branch ${index}: a mapping can only name components`);
      continue;
    }
    const name = schemaName(branch.$ref);
    const values = allowedValues(document, branch, property) ?? [];
    if (values.length === 0) {
      problems.push(`expected \`${name}\` to give \`${property}\` a \`const\` or an \`enum\` of strings`);
    }
    for (const value of values) {
      const other = mapping[value];
      if (other !== undefined) {
        problems.push(`\`${value}\` is \`${property}\` of \`${schemaName(other)}\` and of \`${name}\``);
      }
      mapping[value] = branch.$ref;
    }
  }
  return mapping;
}

/**
 * Gives every discriminator of the document its `mapping`: each value of the property -> the branch that allows it.
 * OpenAPI takes the names of the schemas for the values where there is no mapping, and so do generated clients.
 * Changes the document in place. Throws ContractError where the values cannot be derived.
 */
export function mapDiscriminators(document: Document): void {
  const problems: string[] = [];
  for (const [schema, pointer] of allSchemas(document)) {
    if (schema?.discriminator === undefined) continue;
    const { propertyName, mapping } = schema.discriminator;
    const found: string[] = [];
    if (mapping !== undefined) found.push('expected a discriminator without `mapping`, which is derived');
    schema.discriminator.mapping = deriveMapping(document, schema, propertyName, found);
    problems.push(...found.map((problem) => `${pointer}: ${problem}`));
  }
  if (problems.length > 0) throw new ContractError('a discriminator cannot be mapped:', problems);
}
