import { brandedValues } from '../generated/brand.ts';
import type { Brand } from './brand.ts';

/** The API document, as far as the pages read it. */
export interface ReferenceDocument {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly components: {
    readonly parameters: Readonly<Record<string, object>>;
    readonly schemas: Readonly<Record<string, object>>;
  };
}

interface DocumentOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly object[];
  readonly security?: readonly Readonly<Record<string, unknown>>[];
}

/** An operation or an event in the lists of the reference. */
export interface ReferenceEntry {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  /** In upper case. */
  readonly method: string;
  /** Undefined for an event. */
  readonly path?: string;
  /** The type of an event. */
  readonly event?: string;
  readonly operation: DocumentOperation;
}

/** Returns every operation and every event, by operationId, in the order of the document. */
export function listReference({ paths, webhooks }: ReferenceDocument): ReadonlyMap<string, ReferenceEntry> {
  const entriesOf = (items: ReferenceDocument['paths'], nameOf: (key: string) => object) =>
    Object.entries(items).flatMap(([key, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, ReferenceEntry] => {
        const { operationId: id, tags, summary } = operation;
        const entry = { id, tag: tags[0] ?? '', summary, method: method.toUpperCase(), operation };
        return [id, { ...entry, ...nameOf(key) }];
      }),
    );
  return new Map([...entriesOf(paths, (path) => ({ path })), ...entriesOf(webhooks, (event) => ({ event }))]);
}

/** Returns one operation with its parameters resolved, and with every schema that it refers to. */
export function sliceOf(document: ReferenceDocument, entry: ReferenceEntry): object {
  const { operation, ...line } = entry;
  const { operationId: _id, tags: _tags, summary: _summary, ...rest } = operation;
  const parameters = (operation.parameters ?? []).map((parameter) =>
    '$ref' in parameter ? document.components.parameters[nameIn(parameter.$ref)] : parameter,
  );
  const security = (operation.security ?? document.security).flatMap(Object.keys);
  const schemas: Record<string, object> = {};
  collectSchemas({ ...rest, parameters }, document.components.schemas, schemas);
  return { ...line, ...rest, parameters, security, schemas };
}

function collectSchemas(
  node: unknown,
  all: Readonly<Record<string, object>>,
  found: Record<string, object>,
): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (key !== '$ref') {
      collectSchemas(value, all, found);
      continue;
    }
    const name = nameIn(value);
    const schema = all[name];
    if (schema === undefined || name in found) continue;
    found[name] = schema;
    collectSchemas(schema, all, found);
  }
}

function nameIn(reference: unknown): string {
  return String(reference).split('/').at(-1) ?? '';
}

/** Translates the API document to a brand: headers, property names, DIDs, literals, error codes and examples. */
export function brandDocument(document: unknown, brand: Brand): unknown {
  return rename(document, '', brand);
}

function rename(node: unknown, name: string, brand: Brand): unknown {
  if (typeof node === 'string') {
    return brandedValues[name]?.includes(node) ? brand.writeLiteral(node) : brand.writeText(node);
  }
  if (Array.isArray(node)) return node.map((item) => rename(item, name, brand));
  if (typeof node !== 'object' || node === null) return node;
  // All literals in the schema of a branded value contain the neutral word.
  const isBranded = 'x-branded' in node && node['x-branded'] === true;
  return Object.fromEntries(
    Object.entries(node).map(([key, inner]) => [
      brand.writeText(key),
      isBranded && key !== 'description' ? renameLiterals(inner, brand) : rename(inner, key, brand),
    ]),
  );
}

function renameLiterals(value: unknown, brand: Brand): unknown {
  if (typeof value === 'string') return brand.writeLiteral(value);
  return Array.isArray(value) ? value.map((item) => renameLiterals(item, brand)) : value;
}
