import { isDeepStrictEqual } from 'node:util';
import { type ContractDocument, resolveReference } from '../contract-document.ts';
import { type Changes, shown } from './change.ts';

/** Who writes the value: in a request the client, in a response or an event the server. */
export type Direction = 'request' | 'response';

type Keywords = Readonly<Record<string, unknown>>;

/** What a comparison of schemas needs besides them. */
export interface SchemaComparison {
  readonly before: ContractDocument;
  readonly after: ContractDocument;
  readonly changes: Changes;
  /** Pairs that were compared: documents contain schemas that contain themselves. */
  readonly compared: Set<string>;
  /** A number for each schema object, so that pairs have names. */
  readonly numbers: Map<object, number>;
}

interface Place {
  readonly name: string;
  readonly direction: Direction;
}

/** A schema of both documents behind its references. */
interface Pair {
  readonly before: Keywords;
  readonly after: Keywords;
  readonly place: Place;
}

const textKeywords = ['title', 'description', 'example', 'examples', '$comment', 'x-known-values'];
const unions = ['oneOf', 'anyOf', 'allOf'];
const compared = new Set([
  ...[...textKeywords, ...unions],
  ...['type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items', 'discriminator'],
  ...['format', 'x-format'],
]);
/** The larger, the fewer values are allowed. */
const lowerLimits = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
/** The smaller, the fewer values are allowed. */
const upperLimits = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const shapes = ['pattern', 'multipleOf', 'uniqueItems'];

/** Compares two schemas. `place.name`: for schemas without a name of their own. */
export function diffSchemas(
  comparison: SchemaComparison,
  [before, after]: readonly [unknown, unknown],
  place: Place,
): void {
  const pair = pairOf(comparison, [before, after], place);
  if (pair === undefined) return;
  const key = `${place.direction} ${numberOf(comparison, pair.before)} ${numberOf(comparison, pair.after)}`;
  if (comparison.compared.has(key)) return;
  comparison.compared.add(key);
  diffTypes(comparison, pair);
  diffValues(comparison, pair);
  diffLimits(comparison, pair);
  diffFormats(comparison, pair);
  diffProperties(comparison, pair);
  diffOpenness(comparison, pair);
  diffUnions(comparison, pair);
  diffOthers(comparison, pair);
  const { name, direction } = pair.place;
  if (pair.before.items !== undefined || pair.after.items !== undefined) {
    diffSchemas(comparison, [pair.before.items ?? {}, pair.after.items ?? {}], {
      name: `${name}[]`,
      direction,
    });
  }
}

function pairOf(
  { before, after }: SchemaComparison,
  [old, fresh]: readonly [unknown, unknown],
  { name, direction }: Place,
): Pair | undefined {
  const [resolvedOld, resolvedFresh] = [resolveReference(before, old), resolveReference(after, fresh)];
  const reference = (fresh as { $ref?: string } | undefined)?.$ref;
  const place = { name: reference?.split('/').at(-1) ?? name, direction };
  return { before: keywordsOf(resolvedOld), after: keywordsOf(resolvedFresh), place };
}

/** `true` allows everything, `false` nothing. */
function keywordsOf(schema: unknown): Keywords {
  if (typeof schema === 'object' && schema !== null) return schema as Keywords;
  return schema === false ? nothing : anything;
}

const nothing: Keywords = { not: {} };
const anything: Keywords = {};

function numberOf({ numbers }: SchemaComparison, schema: object): number {
  const number = numbers.get(schema) ?? numbers.size;
  numbers.set(schema, number);
  return number;
}

function nameOf({ place: { name, direction } }: Pair): string {
  return `${name} (${direction})`;
}

/** Fewer values break clients that write them, more values clients that read them. */
function severityOf(direction: Direction, isNarrower: boolean): 'breaking' | 'compatible' {
  return (direction === 'request') === isNarrower ? 'breaking' : 'compatible';
}

function diffTypes({ changes }: SchemaComparison, pair: Pair): void {
  const [before, after] = [typesOf(pair.before), typesOf(pair.after)];
  const removed = before.filter((type) => !after.includes(type));
  const added = after.filter((type) => !before.includes(type));
  const { direction } = pair.place;
  const add = (isNarrower: boolean): void =>
    changes.add(
      severityOf(direction, isNarrower),
      'type-changed',
      nameOf(pair),
      `was ${shown(before.join(' or ') || 'any')}, is ${shown(after.join(' or ') || 'any')}`,
    );
  if (removed.length === 0 && added.length === 0) return;
  // Without a type, every type is allowed.
  if (after.length > 0 && (removed.length > 0 || before.length === 0)) add(true);
  if (before.length > 0 && (added.length > 0 || after.length === 0)) add(false);
}

function typesOf({ type }: Keywords): string[] {
  return ([type].flat() as string[]).filter((name) => name !== undefined);
}

function diffValues({ changes }: SchemaComparison, pair: Pair): void {
  const [before, after] = [valuesOf(pair.before), valuesOf(pair.after)];
  if (before === undefined && after === undefined) return;
  const { direction } = pair.place;
  const add = (isNarrower: boolean, message: string): void =>
    changes.add(severityOf(direction, isNarrower), 'values-changed', nameOf(pair), message);
  if (before === undefined) add(true, `is one of ${shown(after)} now`);
  if (after === undefined) add(false, 'is not an enumeration any more');
  if (before === undefined || after === undefined) return;
  const has = (values: readonly unknown[], value: unknown): boolean =>
    values.some((other) => isDeepStrictEqual(other, value));
  for (const value of before) if (!has(after, value)) add(true, `${shown(value)} was removed`);
  for (const value of after) if (!has(before, value)) add(false, `${shown(value)} was added`);
}

function valuesOf(schema: Keywords): readonly unknown[] | undefined {
  if ('const' in schema) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}

function diffLimits({ changes }: SchemaComparison, pair: Pair): void {
  const { before, after, place } = pair;
  const add = (keyword: string, isNarrower: boolean): void => {
    const message = `${keyword} was ${shown(before[keyword])}, is ${shown(after[keyword])}`;
    // A client that reads values rarely depends on their limits.
    const severity = place.direction === 'request' && isNarrower ? 'breaking' : 'compatible';
    changes.add(severity, 'limit-changed', nameOf(pair), message);
  };
  for (const [keywords, absent, sign] of [
    [lowerLimits, Number.NEGATIVE_INFINITY, 1],
    [upperLimits, Number.POSITIVE_INFINITY, -1],
  ] as const) {
    for (const keyword of keywords) {
      const [old, fresh] = [before[keyword] ?? absent, after[keyword] ?? absent] as [number, number];
      if (old !== fresh) add(keyword, (fresh - old) * sign > 0);
    }
  }
  for (const keyword of shapes) {
    if (!isDeepStrictEqual(before[keyword], after[keyword])) add(keyword, after[keyword] !== undefined);
  }
}

/** `x-format` is a format that other tools do not know; `format` beside it is the nearest that they do know. */
function diffFormats({ changes }: SchemaComparison, pair: Pair): void {
  const [before, after] = [pair.before, pair.after].map((schema) => schema['x-format'] ?? schema.format);
  if (isDeepStrictEqual(before, after)) {
    const hasMoved = pair.before['x-format'] !== pair.after['x-format'];
    if (hasMoved || pair.before.format === pair.after.format) return;
    const message = `format was ${shown(pair.before.format)}, is ${shown(pair.after.format)}`;
    changes.add('compatible', 'limit-changed', nameOf(pair), message);
    return;
  }
  // Clients that read a value depend on its format, such as seconds or milliseconds, but not on a missing one.
  const isNarrower = after !== undefined && (pair.place.direction === 'request' || before !== undefined);
  const message = `format was ${shown(before)}, is ${shown(after)}`;
  changes.add(isNarrower ? 'breaking' : 'compatible', 'limit-changed', nameOf(pair), message);
}

function diffProperties(comparison: SchemaComparison, pair: Pair): void {
  const { changes } = comparison;
  const { name, direction } = pair.place;
  const [before, after] = [propertiesOf(pair.before), propertiesOf(pair.after)];
  const [required, requiredNow] = [requiredOf(pair.before), requiredOf(pair.after)];
  const at = (property: string): string => `${name}.${property} (${direction})`;
  for (const [property, schema] of Object.entries(before)) {
    if (!(property in after)) {
      changes.add('breaking', 'property-removed', at(property), 'was removed');
    } else {
      diffSchemas(comparison, [schema, after[property]], { name: `${name}.${property}`, direction });
    }
  }
  for (const property of Object.keys(after)) {
    if (property in before) continue;
    const isRequired = direction === 'request' && requiredNow.has(property);
    const message = isRequired ? 'was added and is required' : 'was added';
    changes.add(isRequired ? 'breaking' : 'compatible', 'property-added', at(property), message);
  }
  for (const property of new Set([...required, ...requiredNow])) {
    const isNow = requiredNow.has(property);
    if (isNow === required.has(property)) continue;
    // What was added or removed is reported above.
    if (property in before !== property in after) continue;
    const message = isNow ? 'is required now' : 'is not required any more';
    changes.add(severityOf(direction, isNow), 'required-changed', at(property), message);
  }
}

function propertiesOf({ properties }: Keywords): Keywords {
  return (properties ?? {}) as Keywords;
}

function requiredOf({ required }: Keywords): ReadonlySet<string> {
  return new Set((required ?? []) as string[]);
}

function diffOpenness(comparison: SchemaComparison, pair: Pair): void {
  const [before = true, after = true] = [pair.before.additionalProperties, pair.after.additionalProperties];
  if (isDeepStrictEqual(before, after)) return;
  const { name, direction } = pair.place;
  if (before !== false && after !== false) {
    diffSchemas(comparison, [before, after], { name: `${name}.*`, direction });
    return;
  }
  const isClosed = after === false;
  const severity = direction === 'request' && isClosed ? 'breaking' : 'compatible';
  const message = `undeclared properties are ${isClosed ? 'refused' : 'allowed'} now`;
  comparison.changes.add(severity, 'openness-changed', nameOf(pair), message);
}

function diffUnions(comparison: SchemaComparison, pair: Pair): void {
  for (const union of unions) {
    const [before, after] = [branchesOf(pair.before, union), branchesOf(pair.after, union)];
    const { name, direction } = pair.place;
    for (const [key, branch] of before) {
      const same = after.get(key);
      if (same !== undefined) {
        diffSchemas(comparison, [branch, same], { name: `${name}<${key}>`, direction });
      } else {
        // `allOf` adds demands: one less allows more.
        const severity = union === 'allOf' ? severityOf(direction, false) : 'breaking';
        comparison.changes.add(
          severity,
          'branch-removed',
          nameOf(pair),
          `the branch ${shown(key)} was removed`,
        );
      }
    }
    for (const key of after.keys()) {
      if (before.has(key)) continue;
      const severity = severityOf(direction, union === 'allOf');
      comparison.changes.add(severity, 'branch-added', nameOf(pair), `the branch ${shown(key)} was added`);
    }
  }
}

/** The branches by their tags where there is a discriminator, otherwise by name, type or position. */
function branchesOf(schema: Keywords, union: string): ReadonlyMap<string, unknown> {
  const branches = (schema[union] ?? []) as readonly { readonly $ref?: string; readonly type?: unknown }[];
  const { mapping = {} } = (schema.discriminator ?? {}) as { mapping?: Record<string, string> };
  const tags = Object.entries(mapping);
  const tagged = tags.flatMap(([tag, reference]) => {
    const branch = branches.find(({ $ref }) => $ref === reference);
    return branch === undefined ? [] : [[tag, branch] as const];
  });
  const keyOf = ({ $ref, type }: (typeof branches)[number], index: number): string => {
    if ($ref !== undefined) return $ref.split('/').at(-1)!;
    const isOnlyOfType = type !== undefined && branches.filter((other) => other.type === type).length === 1;
    return isOnlyOfType ? String(type) : `branch ${index + 1}`;
  };
  const others = branches
    .map((branch, index) => [keyOf(branch, index), branch] as const)
    .filter(([, branch]) => !tagged.some(([, known]) => known === branch));
  return new Map<string, unknown>([...tagged, ...others]);
}

function diffOthers({ changes }: SchemaComparison, pair: Pair): void {
  const { before, after } = pair;
  const limits = [...lowerLimits, ...upperLimits, ...shapes];
  for (const keyword of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (isDeepStrictEqual(before[keyword], after[keyword])) continue;
    if (textKeywords.includes(keyword)) {
      changes.add('text', 'text-changed', nameOf(pair), `${keyword} changed`);
    } else if (keyword === 'discriminator') {
      diffDiscriminator(changes, pair);
    } else if (!compared.has(keyword) && !limits.includes(keyword)) {
      const message = `${keyword} was ${shown(before[keyword])}, is ${shown(after[keyword])}`;
      changes.add('compatible', 'schema-changed', nameOf(pair), message);
    }
  }
}

/** Its branches are compared as those of the union. */
function diffDiscriminator(changes: Changes, pair: Pair): void {
  const property = ({ discriminator }: Keywords): unknown =>
    (discriminator as { propertyName?: unknown } | undefined)?.propertyName;
  const [before, after] = [property(pair.before), property(pair.after)];
  if (before === after) return;
  const message = `the discriminator was ${shown(before)}, is ${shown(after)}`;
  changes.add('breaking', 'schema-changed', nameOf(pair), message);
}
