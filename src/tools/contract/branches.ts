import { type ContractDocument, resolveReference, type Schema } from './contract-document.ts';

/** The maximum depth of values that are examined. No schema distinguishes branches below it. */
const MAX_DEPTH = 64;

type Keywords = Readonly<Record<string, unknown>>;

/** A schema whose references are resolved, and the prefix for the names of its branches. */
interface Place {
  readonly keywords: Keywords;
  /** A name such as `PolicyCondition` or `SubmitWalletImportRequest.wallet`. */
  readonly name: string;
}

/**
 * Lists every branch that a value of the schema can contain, such as `WalletRpcRequest.method=personal_sign`. The
 * name of a branch starts with the name of its schema, wherever in the value the branch is.
 */
export function branchesOf(document: ContractDocument, schema: Schema, name: string): string[] {
  const found = new Set<string>();
  const seen = new Set<Keywords>();
  const visit = (node: unknown, outer: string): void => {
    const place = placeOf(document, node, outer);
    if (place === undefined || seen.has(place.keywords)) return;
    seen.add(place.keywords);
    for (const tag of tagsOf(place.keywords)) found.add(branchName(place, tag));
    for (const [inner, innerName] of partsOf(place)) visit(inner, innerName);
  };
  visit(schema, name);
  return [...found];
}

/** Lists the branches that a value uses, under the names that `branchesOf` gives them. */
export function branchesIn(
  document: ContractDocument,
  schema: Schema,
  { value, name }: { readonly value: unknown; readonly name: string },
): string[] {
  const found = new Set<string>();
  const visit = (node: unknown, outer: string, inner: unknown, depth: number): void => {
    const place = placeOf(document, node, outer);
    if (place === undefined || typeof inner !== 'object' || inner === null || depth > MAX_DEPTH) return;
    const { keywords } = place;
    const property = propertyOf(keywords);
    const tag = property === undefined ? undefined : (inner as Keywords)[property];
    const isKnown = typeof tag === 'string' && tagsOf(keywords).includes(tag);
    if (isKnown) found.add(branchName(place, tag));
    for (const branch of unionOf(keywords)) {
      if (fits(document, branch, inner)) visit(branch, place.name, inner, depth + 1);
    }
    if (Array.isArray(inner)) {
      for (const item of inner) visit(keywords.items, place.name, item, depth + 1);
      return;
    }
    const properties = (keywords.properties ?? {}) as Keywords;
    for (const [member, memberValue] of Object.entries(inner)) {
      const memberSchema = properties[member] ?? keywords.additionalProperties;
      visit(memberSchema, `${place.name}.${member}`, memberValue, depth + 1);
    }
  };
  visit(schema, name, value, 0);
  return [...found];
}

function placeOf(document: ContractDocument, node: unknown, outer: string): Place | undefined {
  const { $ref: reference } = (node ?? {}) as { $ref?: string };
  const keywords = resolveReference(document, node);
  if (typeof keywords !== 'object' || keywords === null) return undefined;
  return { keywords: keywords as Keywords, name: reference?.split('/').at(-1) ?? outer };
}

function branchName({ keywords, name }: Place, tag: string): string {
  return `${name}.${propertyOf(keywords)}=${tag}`;
}

function propertyOf({ discriminator }: Keywords): string | undefined {
  return (discriminator as { propertyName?: string } | undefined)?.propertyName;
}

function tagsOf({ discriminator }: Keywords): string[] {
  const { mapping } = (discriminator ?? {}) as { mapping?: Readonly<Record<string, string>> };
  return Object.keys(mapping ?? {});
}

function unionOf({ oneOf, anyOf, allOf }: Keywords): unknown[] {
  return [oneOf, anyOf, allOf].flatMap((branches) => (Array.isArray(branches) ? branches : []));
}

function partsOf({ keywords, name }: Place): [schema: unknown, name: string][] {
  const properties = Object.entries((keywords.properties ?? {}) as Keywords);
  return [
    ...unionOf(keywords).map((branch): [unknown, string] => [branch, name]),
    ...properties.map(([member, schema]): [unknown, string] => [schema, `${name}.${member}`]),
    [keywords.items, name],
    [keywords.additionalProperties, name],
  ];
}

/** Returns whether a value can belong to a branch: it must have the branch's constants and required properties. */
function fits(document: ContractDocument, branch: unknown, value: object): boolean {
  const keywords = resolveReference(document, branch) as Keywords | undefined;
  if (typeof keywords !== 'object' || keywords === null) return false;
  if (Array.isArray(value) !== (keywords.type === 'array' || keywords.items !== undefined)) return false;
  const members = value as Keywords;
  const required = (keywords.required ?? []) as string[];
  if (!required.every((name) => name in members)) return false;
  return Object.entries((keywords.properties ?? {}) as Keywords).every(([name, schema]) => {
    const { const: only, enum: listed } = (resolveReference(document, schema) ?? {}) as Keywords;
    const found = members[name];
    if (found === undefined || typeof found === 'object') return true;
    return (only === undefined || only === found) && (!Array.isArray(listed) || listed.includes(found));
  });
}
