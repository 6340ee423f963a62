/** The parts of an OpenAPI 3.1 document that reports and comparisons read. */
export interface ContractDocument {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly webhooks?: Readonly<Record<string, unknown>>;
  readonly components?: Readonly<Record<string, unknown>>;
}

/** Operations by method in lower case. Other members of a path, such as shared parameters, are not operations. */
type PathItem = Readonly<Record<string, ContractOperation>>;

interface ContractOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, ContractResponse>>;
}

interface ContractResponse {
  readonly content?: Readonly<Record<string, ContractMedia>>;
}

interface ContractMedia {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

/** A schema, a reference to a schema, or `true` or `false`. */
export type Schema = boolean | { readonly [keyword: string]: unknown };

const JSON_TYPE = 'application/json';

/** Returns each operation once, in the order of the document. */
export function operationsOf(
  document: ContractDocument,
): { readonly method: string; readonly path: string; readonly operation: ContractOperation }[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => typeof operation?.operationId === 'string')
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Returns the schema of a JSON body, or undefined if there is none. */
export function jsonSchemaOf(document: ContractDocument, message: unknown): Schema | undefined {
  const { content } = (resolveReference(document, message) ?? {}) as ContractResponse;
  return content?.[JSON_TYPE]?.schema;
}

/** Follows references within the document and returns the node at their end. */
export function resolveReference(document: ContractDocument, node: unknown): unknown {
  let current = node;
  // The limit protects against cyclic `$ref`s.
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

/** A documented result that can be tested. */
export interface Combination {
  /** A name such as `createWallet 400 invalid_data`, `createWallet 200` or `event wallet.created`. */
  readonly name: string;
  /**
   * The name under which it is counted. Some error codes are never sent. Each of them is the only code of its status,
   * so responses with that status count for it.
   */
  readonly recordedAs: string;
  readonly kind: 'success' | 'error' | 'event';
}

/** Lists every operation with each of its statuses and error codes, and every webhook event. */
export function combinationsOf(document: ContractDocument): Combination[] {
  return [
    ...operationsOf(document).flatMap(({ operation: { operationId, responses } }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        Number(status) < 400
          ? [{ ...named(`${operationId} ${status}`), kind: 'success' as const }]
          : errorsOf(`${operationId} ${status}`, response),
      ),
    ),
    ...Object.keys(document.webhooks ?? {}).map((type) => ({
      ...named(`event ${type}`),
      kind: 'event' as const,
    })),
  ];
}

/** Returns the name of the combination that a response shows. `body` is parsed JSON. */
export function answerName(operationId: string, status: number, body: unknown): string {
  const code = status < 400 ? undefined : (body as { code?: unknown } | null | undefined)?.code;
  return `${operationId} ${status}${typeof code === 'string' ? ` ${code}` : ''}`;
}

function named(name: string): { name: string; recordedAs: string } {
  return { name, recordedAs: name };
}

/** Lists the error codes of a response. The document has one example per error code, and the code is its name. */
function errorsOf(prefix: string, { content }: ContractResponse): Combination[] {
  const examples = Object.entries(content?.['application/json']?.examples ?? {});
  return examples.map(([code, { value }]) => ({
    name: `${prefix} ${code}`,
    recordedAs: (value as { code?: string }).code === undefined ? prefix : `${prefix} ${code}`,
    kind: 'error',
  }));
}
