/** The parts of an OpenAPI 3.1 document that reports and comparisons read. */
export interface ContractDocument {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly webhooks?: Readonly<Record<string, unknown>>;
  readonly components?: Readonly<Record<string, unknown>>;
}

/** By method in lower case; other members, such as shared parameters, are no operations. */
type PathItem = Readonly<Record<string, ContractOperation>>;

export interface ContractOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly parameters?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, ContractResponse>>;
}

export interface ContractResponse {
  readonly content?: Readonly<Record<string, ContractMedia>>;
}

interface ContractMedia {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

/** A schema, a reference to one, or `true` and `false`. */
export type Schema = boolean | { readonly [keyword: string]: unknown };

const JSON_TYPE = 'application/json';

/** Each operation once, in the order of the document. */
export function operationsOf(
  document: ContractDocument,
): { readonly method: string; readonly path: string; readonly operation: ContractOperation }[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => typeof operation?.operationId === 'string')
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** The schema of a JSON body; undefined if there is none. */
export function jsonSchemaOf(document: ContractDocument, message: unknown): Schema | undefined {
  const { content } = (resolveReference(document, message) ?? {}) as ContractResponse;
  return content?.[JSON_TYPE]?.schema;
}

/** The content of a node, behind any chain of references within the document. */
export function resolveReference(document: ContractDocument, node: unknown): unknown {
  let current = node;
  // Guards against cyclic `$ref`s.
  for (let step = 0; step < 100; step += 1) {
    const { $ref: reference } = (current ?? {}) as { $ref?: unknown };
    if (typeof reference !== 'string' || !reference.startsWith('#/')) return current;
    current = reference
      .slice(2)
      .split('/')
      .map((name) => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], document);
  }
  return undefined;
}
