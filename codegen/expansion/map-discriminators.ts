import {
  allSchemas,
  ContractError,
  type Document,
  resolveSchema,
  type Schema,
  schemaName,
} from '../document.ts';

/** Keywords that compose a schema from others. */
const COMPOSITIONS = ['allOf', 'oneOf', 'anyOf'] as const;

/**
 * Returns the values that a schema allows for a property, from `const` and `enum`, through references and
 * compositions. Undefined when the property is not restricted to a fixed set of strings.
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
    // In `allOf`, one part may declare the property for all. In `oneOf` and `anyOf`, every alternative must declare
    // it.
    const found = parts.filter((values) => values !== undefined);
    if (found.length > 0 && (keyword === 'allOf' || found.length === parts.length)) return found.flat();
  }
  return undefined;
}

/** Returns a reference to the branch that allows each value of the property. Adds faults to `problems`. */
function deriveMapping(
  document: Document,
  schema: Schema,
  property: string,
  problems: string[],
): Record<string, string> {
  const mapping: Record<string, string> = {};
  const branches = schema.oneOf ?? schema.anyOf ?? [];
  if (branches.length === 0) problems.push('expected `oneOf` or `anyOf` together with the discriminator');
  for (const [index, branch] of branches.entries()) {
    if (branch.$ref === undefined) {
      problems.push(`expected a reference as branch ${index}, because a mapping can only name components`);
      continue;
    }
    const name = schemaName(branch.$ref);
    const values = allowedValues(document, branch, property) ?? [];
    if (values.length === 0) {
      problems.push(
        `expected \`${name}\` to declare \`${property}\` with a \`const\` or an \`enum\` of strings`,
      );
    }
    for (const value of values) {
      const other = mapping[value];
      if (other !== undefined) {
        problems.push(`expected one branch for \`${value}\`, got \`${schemaName(other)}\` and \`${name}\``);
      }
      mapping[value] = branch.$ref;
    }
  }
  return mapping;
}

/**
 * Adds a `mapping` to every discriminator, from each value of the property to the branch that allows it. Without a
 * mapping, OpenAPI and generated clients use the schema names as values. Changes the document in place.
 *
 * @throws ContractError when the values cannot be derived.
 */
export function mapDiscriminators(document: Document): void {
  const problems: string[] = [];
  for (const [schema, pointer] of allSchemas(document)) {
    if (schema?.discriminator === undefined) continue;
    const { propertyName, mapping } = schema.discriminator;
    const found: string[] = [];
    if (mapping !== undefined) found.push('expected no `mapping`, because it is derived');
    schema.discriminator.mapping = deriveMapping(document, schema, propertyName, found);
    problems.push(...found.map((problem) => `${pointer}: ${problem}`));
  }
  if (problems.length > 0) throw new ContractError('a discriminator cannot be mapped:', problems);
}
