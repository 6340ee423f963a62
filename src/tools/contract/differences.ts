import { type ContractDocument, resolveReference, type Schema } from './contract-document.ts';

/** A place where a value differs from its schema. */
export interface Difference {
  /** A JSON pointer. */
  readonly pointer: string;
  readonly message: string;
}

type Keywords = Readonly<Record<string, unknown>>;

/** The maximum depth and number of differences that are described. */
const MAX_DEPTH = 64;
const MAX_DIFFERENCES = 50;
const MAX_SHOWN = 60;

/**
 * Lists all places where the body of a response differs from its schema: missing and unknown properties, types,
 * constants and listed values. In a union, it compares the value with the branch that is nearest. Patterns, formats
 * and limits are left to the validators, which stop at the first difference.
 */
export function differencesFrom(document: ContractDocument, schema: Schema, value: unknown): Difference[] {
  return visit(schema, value, '', 0).slice(0, MAX_DIFFERENCES);

  function visit(node: unknown, inner: unknown, pointer: string, depth: number): Difference[] {
    const resolved = resolveReference(document, node);
    if (typeof resolved !== 'object' || resolved === null || depth > MAX_DEPTH) return [];
    const keywords = resolved as Keywords;
    const own = differenceOf(keywords, inner);
    if (own !== undefined) return [{ pointer, message: own }];
    const { allOf = [], properties, items } = keywords as { allOf?: unknown[] } & Keywords;
    const branches = branchesOf(keywords, inner);
    const found = [
      ...allOf.flatMap((part) => visit(part, inner, pointer, depth + 1)),
      ...nearest(branches.map((branch) => visit(branch, inner, pointer, depth + 1))),
    ];
    if (Array.isArray(inner)) {
      return [...found, ...inner.flatMap((item, at) => visit(items, item, `${pointer}/${at}`, depth + 1))];
    }
    if (typeof inner !== 'object' || inner === null) return found;
    const members = inner as Keywords;
    const declared = (properties ?? {}) as Keywords;
    const required = (keywords.required ?? []) as readonly string[];
    for (const name of required) {
      if (!Object.hasOwn(members, name)) found.push({ pointer: at(pointer, name), message: 'is missing' });
    }
    for (const [name, member] of Object.entries(members)) {
      const place = at(pointer, name);
      // Objects with properties allow no others, unless the schema says so.
      const isKnown = Object.hasOwn(declared, name) || keywords.additionalProperties !== undefined;
      if (properties !== undefined && !isKnown) found.push({ pointer: place, message: 'unknown property' });
      const schemaOfMember = Object.hasOwn(declared, name) ? declared[name] : keywords.additionalProperties;
      if (schemaOfMember === false) found.push({ pointer: place, message: 'unknown property' });
      else found.push(...visit(schemaOfMember, member, place, depth + 1));
    }
    return found;
  }

  /** Returns the branches of a union that a value can belong to: the one that its tag names, or all. */
  function branchesOf({ oneOf, anyOf, discriminator }: Keywords, inner: unknown): readonly unknown[] {
    const all = [oneOf, anyOf].flatMap((branches) => (Array.isArray(branches) ? branches : []));
    const { propertyName, mapping = {} } = (discriminator ?? {}) as {
      propertyName?: string;
      mapping?: Readonly<Record<string, string>>;
    };
    const tag = propertyName === undefined ? undefined : (inner as Keywords | null)?.[propertyName];
    const named = typeof tag === 'string' ? mapping[tag] : undefined;
    return named === undefined ? all : [{ $ref: named }];
  }
}

/** Returns how a value differs from a schema without looking into it, or undefined if it does not. */
function differenceOf({ type, const: only, enum: listed }: Keywords, value: unknown): string | undefined {
  const types = type === undefined ? [] : [type].flat();
  if (types.length > 0 && !types.some((each) => hasType(value, String(each)))) {
    return `expected ${types.join(' or ')}, got ${shown(value)}`;
  }
  if (only !== undefined && value !== only) return `expected ${shown(only)}, got ${shown(value)}`;
  if (Array.isArray(listed) && !listed.includes(value)) {
    return `expected one of ${listed.map((each) => String(each)).join(', ')}, got ${shown(value)}`;
  }
  return undefined;
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

/** Returns the shortest list. An empty list means that a branch fits. */
function nearest(lists: readonly Difference[][]): readonly Difference[] {
  return lists.reduce<readonly Difference[]>(
    (best, list, index) => (index === 0 || list.length < best.length ? list : best),
    [],
  );
}

function at(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
