import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.ts';
import { type ContractDocument, operationsOf, resolveReference } from './contract-document.ts';

/** A parameter, or a field of the body. The fields of an object or a list directly follow it. */
export interface DescribedField {
  readonly name: string;
  /** How many objects of the body enclose it. */
  readonly depth: number;
  readonly type: string;
  readonly is_required: boolean;
  readonly description: string;
}

/** The facts of the API document about an operation, for people who call it. */
export interface DescribedOperation {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly DescribedField[];
  /** The fields of the body. If there are several kinds of bodies, only the fields that all kinds have. */
  readonly body: readonly DescribedField[];
  /** The field that distinguishes kinds of bodies, and its values. Null if all bodies have the same fields. */
  readonly kinds: { readonly field: string; readonly values: readonly string[] } | null;
  readonly errors: readonly { readonly status: number; readonly codes: readonly string[] }[];
  /** Valid bodies, by the name of the example. */
  readonly examples: Readonly<Record<string, unknown>>;
}

type Node = Readonly<Record<string, unknown>>;

/** The maximum depth of fields. The reference shows deeper fields, folded. */
const MAX_DEPTH = 4;
const MAX_VALUES = 6;

/**
 * Describes an operation of the API or of the control plane, with required fields first.
 *
 * @param kind a value of the field that distinguishes kinds of bodies, such as `personal_sign`.
 * @param documents the result of `describedDocuments`, for a caller that describes many operations.
 * @returns undefined for an unknown operation.
 */
export function describeOperation(
  id: string,
  kind?: string,
  documents = describedDocuments(),
): DescribedOperation | undefined {
  for (const document of documents) {
    const found = operationsOf(document).find(({ operation }) => operation.operationId === id);
    if (found !== undefined) return describe(document, found, kind);
  }
  return undefined;
}

/** Reads the documents of the API and of the control plane. */
export function describedDocuments(): ContractDocument[] {
  return ['openapi.json', 'control-plane.json'].map((name) =>
    JSON.parse(readFileSync(join(packageRoot(), 'openapi', name), 'utf8')),
  );
}

function describe(
  document: ContractDocument,
  { method, path, operation }: ReturnType<typeof operationsOf>[number],
  kind: string | undefined,
): DescribedOperation {
  const follow = (node: unknown): Node => (resolveReference(document, node) ?? {}) as Node;
  const parameters = (operation.parameters ?? []).map(follow).filter((each) => each.in !== 'header');
  const media = follow((follow(operation.requestBody).content as Node | undefined)?.['application/json']);
  const body = follow(media.schema);
  const field = (body.discriminator as { readonly propertyName: string } | undefined)?.propertyName;
  const mapping = (body.discriminator as { readonly mapping?: Node } | undefined)?.mapping ?? {};
  const chosen = kind !== undefined && Object.hasOwn(mapping, kind) ? follow({ $ref: mapping[kind] }) : body;
  const isOpen = field !== undefined && chosen === body;
  const examples = Object.entries((media.examples ?? {}) as Record<string, { readonly value?: unknown }>);
  const ofKind = examples.filter(
    ([, { value }]) => isOpen || field === undefined || (value as Node)[field] === kind,
  );
  return {
    ...{ operation: operation.operationId, method, path, summary: operation.summary ?? '' },
    description: oneLine(operation.description),
    parameters: parameters
      .map(({ name, schema, required, description }) => ({
        ...{ name: String(name), depth: 0, type: typeOf(follow(schema), follow) },
        ...{ is_required: required === true, description: oneLine(description) },
      }))
      .sort(requiredFirst),
    body: isOpen ? [] : fieldsOf(chosen, follow, 0),
    kinds: isOpen ? { field, values: Object.keys(mapping) } : null,
    errors: errorsOf(operation.responses, follow),
    examples: Object.fromEntries(ofKind.map(([name, { value }]) => [name, value])),
  };
}

function fieldsOf(schema: Node, follow: (node: unknown) => Node, depth: number): DescribedField[] {
  if (depth >= MAX_DEPTH) return [];
  const [object, ...others] = objectsIn(schema, follow);
  if (object === undefined) return [];
  if (others.length > 0) return alternativeFields([object, ...others], follow, depth);
  const required = new Set((object.required ?? []) as readonly string[]);
  return Object.entries((object.properties ?? {}) as Record<string, Node>)
    .map(([name, given]) => {
      const value = follow(given);
      const description = withExample(oneLine(given.description ?? value.description), value);
      const type = typeOf(value, follow);
      return { name, value, own: { name, depth, type, is_required: required.has(name), description } };
    })
    .sort((one, other) => requiredFirst(one.own, other.own))
    .flatMap(({ value, own }) => [own, ...fieldsOf(value, follow, depth + 1)]);
}

/** The maximum number of fields of all alternatives of a union. The reference shows longer ones, folded. */
const MAX_ALTERNATIVE_FIELDS = 24;

/** Returns the fields of each alternative of a union, without the fields in these. */
function alternativeFields(
  objects: readonly Node[],
  follow: (node: unknown) => Node,
  depth: number,
): DescribedField[] {
  const all = objects.map((object) => fieldsOf(object, follow, depth).filter((each) => each.depth === depth));
  const isCommon = (name: string): boolean => all.every((own) => own.some((each) => each.name === name));
  const fields = all.flatMap((own, index) =>
    own
      .filter(({ name }) => index === 0 || !isCommon(name))
      .map((each) => {
        if (isCommon(each.name)) return each;
        const word = index === 0 ? 'either' : 'or';
        return { ...each, description: `(${word}) ${each.description}`.trim() };
      }),
  );
  return fields.length > MAX_ALTERNATIVE_FIELDS ? [] : fields;
}

const MAX_EXAMPLE = 60;

/** Adds the example of a text to its description, unless the description has it. */
function withExample(description: string, { examples }: Node): string {
  const [example] = (examples ?? []) as readonly unknown[];
  if (typeof example !== 'string' || example.length > MAX_EXAMPLE || description.includes(example))
    return description;
  return `${description} For example \`${example}\`.`.trim();
}

/**
 * Returns the objects that a schema describes: the schema itself, the items of a list, or the objects among
 * alternatives.
 */
function objectsIn(schema: Node, follow: (node: unknown) => Node): Node[] {
  if (schema.properties !== undefined) return [schema];
  if (schema.items !== undefined) return objectsIn(follow(schema.items), follow);
  return alternativesOf(schema, follow).flatMap((each) => objectsIn(each, follow));
}

/**
 * Returns a field with the fields in it, as the root of a tree. Undefined if there is no such field.
 *
 * @param path the names of the field and of those around it, such as `params.transaction`.
 */
export function fieldsAt(fields: readonly DescribedField[], path: string): DescribedField[] | undefined {
  let part = fields;
  for (const [depth, name] of path.split('.').entries()) {
    const at = part.findIndex((each) => each.depth === depth && each.name === name);
    if (at === -1) return undefined;
    const end = part.findIndex((each, index) => index > at && each.depth <= depth);
    part = part.slice(at, end === -1 ? undefined : end);
  }
  const { depth: top = 0 } = part[0] ?? {};
  return part.map((each) => ({ ...each, depth: each.depth - top }));
}

function alternativesOf({ oneOf, anyOf }: Node, follow: (node: unknown) => Node): Node[] {
  return ((oneOf ?? anyOf ?? []) as unknown[]).map(follow);
}

/** Describes the type in a few words, such as `text of at most 50 characters` or `list of objects`. */
function typeOf(schema: Node, follow: (node: unknown) => Node): string {
  const { const: constant, enum: values, type, items } = schema;
  if (constant !== undefined) return JSON.stringify(constant);
  if (Array.isArray(values)) {
    const shown = values.slice(0, MAX_VALUES).join(' | ');
    return values.length > MAX_VALUES ? `${shown} | … (${values.length})` : shown;
  }
  const alternatives = alternativesOf(schema, follow);
  if (alternatives.length > 0)
    return [...new Set(alternatives.map((each) => typeOf(each, follow)))].slice(0, MAX_VALUES).join(' or ');
  if (type === 'array') return `list of ${typeOf(follow(items), follow)}`;
  const name = [type ?? 'any'].flat().join(' or ');
  const limits = [
    limitText(schema.minLength, schema.maxLength, 'characters'),
    limitText(schema.minimum, schema.maximum, ''),
    schema['x-format'] ?? schema.format ?? '',
  ];
  return [name, ...limits.filter((text) => text !== '')].join(', ');
}

function limitText(least: unknown, most: unknown, unit: string): string {
  const range = rangeText(least, most);
  return range === '' ? '' : `${range} ${unit}`.trim();
}

function rangeText(least: unknown, most: unknown): string {
  if (most === undefined) return least === undefined || least === 1 ? '' : `at least ${least}`;
  if (least === undefined) return `at most ${most}`;
  return least === most ? String(most) : `${least} to ${most}`;
}

function errorsOf(
  responses: Readonly<Record<string, unknown>>,
  follow: (node: unknown) => Node,
): DescribedOperation['errors'] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .map(([status, response]) => {
      const media = follow((follow(response).content as Node | undefined)?.['application/json']);
      return { status: Number(status), codes: Object.keys((media.examples ?? {}) as object) };
    });
}

function requiredFirst(one: DescribedField, other: DescribedField): number {
  return Number(other.is_required) - Number(one.is_required);
}

function oneLine(text: unknown): string {
  return typeof text === 'string' ? text.replace(/\s+/g, ' ').trim() : '';
}
