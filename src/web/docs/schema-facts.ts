import type { Schema, Schemas } from './operation-document.ts';

const REFERENCE = '#/components/schemas/';

/** Resolves a schema's reference. Members next to the reference are kept. */
export function resolve(schema: Schema, schemas: Schemas): Schema {
  if (schema.$ref === undefined) return schema;
  const { $ref, ...own } = schema;
  const target = schemas[$ref.slice(REFERENCE.length)];
  return target === undefined ? own : { ...resolve(target, schemas), ...own };
}

/** Describes the type of a value in a few words, such as `string`, `array of integer` or `one of 4`. */
export function kindOf(given: Schema, schemas: Schemas): string {
  const schema = resolve(given, schemas);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const branches = schema.oneOf ?? schema.anyOf;
  if (branches !== undefined) return kindOfBranches(branches, schemas);
  if (schema.enum !== undefined) return 'enum';
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  if (types.length === 0) return schema.properties === undefined ? 'any' : 'object';
  return types
    .map((type) => (type === 'array' && schema.items ? `array of ${kindOf(schema.items, schemas)}` : type))
    .join(' or ');
}

function kindOfBranches(branches: readonly Schema[], schemas: Schemas): string {
  const kinds = branches.map((branch) => kindOf(branch, schemas));
  const distinct = [...new Set(kinds)];
  return distinct.length <= 3 && distinct.join('').length < 40 && !distinct.includes('object')
    ? distinct.join(' or ')
    : `one of ${branches.length}`;
}

/** Describes the constraints on a value, such as `at most 64 characters`. */
export function rulesOf(given: Schema, schemas: Schemas): string[] {
  const schema = resolve(given, schemas);
  // `x-format` is more precise: `unix-ms` instead of `int64`.
  const format = schema['x-format'] ?? schema.format;
  const range = (least: number | undefined, most: number | undefined, unit: string): string[] => {
    if (least === undefined && most === undefined) return [];
    if (least === most) return [`exactly ${least}${unit}`];
    if (most === undefined) return [`at least ${least}${unit}`];
    return [least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`];
  };
  return [
    ...(format === undefined ? [] : [`format \`${format}\``]),
    ...(schema.minLength === 1 && schema.maxLength === undefined
      ? ['not empty']
      : range(schema.minLength, schema.maxLength, ' characters')),
    ...range(schema.minimum, schema.maximum, ''),
    ...range(schema.minItems, schema.maxItems, ' items'),
    ...(schema.pattern === undefined ? [] : [`pattern \`${schema.pattern}\``]),
    ...(schema.default === undefined ? [] : [`default \`${JSON.stringify(schema.default)}\``]),
    ...(schema.deprecated === true ? ['deprecated'] : []),
  ];
}

/** A row below a schema: a property, a branch, or the items of an array. */
export interface Row {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  /** Whether the row is one of several alternative schemas for the value. */
  readonly isBranch?: boolean;
}

/** Returns the rows below a schema, required properties first. */
export function rowsOf(given: Schema, schemas: Schemas): Row[] {
  const schema = resolve(given, schemas);
  const required = new Set(schema.required);
  const rows: Row[] = Object.entries(schema.properties ?? {})
    .map(([name, inner]) => ({ name, schema: inner, isRequired: required.has(name) }))
    .sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
  if (schema.items !== undefined) rows.push(...rowsOfItems(schema.items, schemas));
  if (typeof schema.additionalProperties === 'object') {
    rows.push({ name: '(any name)', schema: schema.additionalProperties, isRequired: false });
  }
  const branches = schema.oneOf ?? schema.anyOf ?? [];
  for (const [position, branch] of branches.entries()) {
    const name = nameOfBranch(schema, branch, position, schemas);
    rows.push({ name, schema: branch, isRequired: false, isBranch: true });
  }
  return rows;
}

/**
 * Returns the rows of an array's items. Items without structure need no row, because `array of string` already
 * describes them.
 */
function rowsOfItems(items: Schema, schemas: Schemas): Row[] {
  const inner = resolve(items, schemas);
  if (inner.properties !== undefined) return rowsOf(inner, schemas);
  return rowsOf(inner, schemas).length === 0 ? [] : [{ name: '(item)', schema: items, isRequired: false }];
}

function nameOfBranch(parent: Schema, branch: Schema, position: number, schemas: Schemas): string {
  const { propertyName = '', mapping = {} } = parent.discriminator ?? {};
  const mapped = Object.keys(mapping).filter((value) => mapping[value] === branch.$ref);
  if (branch.$ref !== undefined && mapped.length > 0) return `${propertyName}: ${mapped.join(', ')}`;
  const named = Object.entries(resolve(branch, schemas).properties ?? {})
    .filter(([, inner]) => resolve(inner, schemas).const !== undefined)
    .map(([name, inner]) => `${name}: ${String(resolve(inner, schemas).const)}`);
  if (named.length > 0) return named.join(', ');
  return branch.$ref?.slice(REFERENCE.length) ?? `(${position + 1})`;
}
