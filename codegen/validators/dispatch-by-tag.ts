import { type Document, type Schema, schemaName } from '../document.ts';

/** With fewer branches, trying them in order is equally fast. */
const MIN_BRANCHES = 6;

/**
 * Groups the branches of an `anyOf` by a tag, which is a property that most of them require with a constant string.
 * Undefined if there is no such property, or only few branches.
 */
export function tagOf(
  branches: readonly Schema[],
  document: Document,
):
  | { property: string; byValue: ReadonlyMap<string, readonly Schema[]>; untagged: readonly Schema[] }
  | undefined {
  if (branches.length < MIN_BRANCHES) return undefined;
  const first = resolve(branches[0]!, document);
  for (const property of first.required ?? []) {
    const byValue = new Map<string, Schema[]>();
    const untagged: Schema[] = [];
    for (const branch of branches) {
      const value = constantOf(resolve(branch, document), property);
      if (value === undefined) untagged.push(branch);
      else byValue.set(value, [...(byValue.get(value) ?? []), branch]);
    }
    if (byValue.size >= MIN_BRANCHES) return { property, byValue, untagged };
  }
  return undefined;
}

/**
 * Makes a schema that is equivalent to `anyOf` over all branches, but tries only those that can match:
 * `if` the tag has a value, `then` the branches with that value and those without a tag, `else` the next value.
 */
export function dispatchByTag(
  branches: readonly Schema[],
  document: Document,
  inner: (schema: Schema) => Record<string, unknown>,
): Record<string, unknown> {
  const everyBranch = { anyOf: branches.map(inner) };
  const tag = tagOf(branches, document);
  if (tag === undefined) return everyBranch;
  let chain: Record<string, unknown> = everyBranch;
  for (const [value, tagged] of [...tag.byValue].reverse()) {
    const possible = [...tagged, ...tag.untagged].map(inner);
    chain = {
      if: { type: 'object', properties: { [tag.property]: { const: value } }, required: [tag.property] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, not a promise
      then: possible.length === 1 ? possible[0] : { anyOf: possible },
      else: chain,
    };
  }
  return chain;
}

function resolve(schema: Schema, document: Document): Schema {
  return schema.$ref === undefined ? schema : (document.components.schemas[schemaName(schema.$ref)] ?? {});
}

/** Returns the constant string that a schema requires for a property. Undefined when the schema requires no constant. */
function constantOf(schema: Schema, property: string): string | undefined {
  if (!schema.required?.includes(property)) return undefined;
  const { const: constant } = schema.properties?.[property] ?? {};
  return typeof constant === 'string' ? constant : undefined;
}
