import { operations } from '../../generated/operations.ts';
import { type ContractDocument, operationsOf, resolveReference } from '../contract/contract-document.ts';

/** A request to an operation, with the values of an example in the API document. */
export interface SampleRequest {
  readonly operation: string;
  readonly tag: string;
  /** The name of the operation, and the name of the example if there are several. */
  readonly name: string;
  readonly summary: string;
  readonly method: string;
  /** The path with parameters in braces, as in the document. */
  readonly path: string;
  readonly pathValues: Readonly<Record<string, string>>;
  /** The required query parameters. */
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly body: unknown;
  /** Whether the app id and secret are sent. */
  readonly hasCredentials: boolean;
  /** The path parameter whose value is the `id` in the response. */
  readonly creates: string | undefined;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly example?: unknown;
  readonly schema?: unknown;
}

// The resources that every sandbox with `--seed-data` has. The wallet has no owner, so the app secret is sufficient.
const seeded: Readonly<Record<string, string>> = { wallet_id: 'ext_wal_acme-ethereum' };

/** In bodies and paths, `{{appId}}` stands for the app that sends the request. */
const ownApp = '{{appId}}';

/** Returns one request per example of each operation, in the order of the document. */
export function sampleRequests(document: ContractDocument): SampleRequest[] {
  const paths = Object.keys(document.paths);
  const appOfExamples = appIdIn(document);
  const own: Readonly<Record<string, string | undefined>> = { ...seeded, app_id: ownApp };
  return operationsOf(document).flatMap(({ method, path, operation }) => {
    const { tag, security } = operations[operation.operationId as keyof typeof operations];
    const parameters = (operation.parameters ?? []).map(
      (parameter) => resolveReference(document, parameter) as Parameter,
    );
    const values = (place: string): [string, string][] =>
      parameters
        .filter((parameter) => parameter.in === place && parameter.required === true)
        .map((parameter) => [parameter.name, own[parameter.name] ?? exampleOf(document, parameter)]);
    const bodies = bodiesOf(document, operation.requestBody).map(
      ([name, body]) => [name, withOwnApp(body, appOfExamples)] as const,
    );
    return bodies.map(
      ([example, body]): SampleRequest => ({
        ...{ operation: operation.operationId, tag, method, path, body },
        name: bodies.length === 1 ? operation.operationId : `${operation.operationId}: ${example}`,
        summary: operation.summary ?? '',
        pathValues: Object.fromEntries(values('path')),
        query: values('query'),
        hasCredentials: security !== 'none',
        creates: method === 'POST' ? createdBy(path, paths) : undefined,
      }),
    );
  });
}

/** Returns the app to which the document's examples belong. */
function appIdIn(document: ContractDocument): string {
  const header = resolveReference(document, { $ref: '#/components/parameters/ServiceAppId' });
  return String((header as Parameter).example);
}

function withOwnApp(body: unknown, appOfExamples: string): unknown {
  if (body === undefined) return undefined;
  return JSON.parse(JSON.stringify(body).replaceAll(`"${appOfExamples}"`, `"${ownApp}"`));
}

function exampleOf(document: ContractDocument, { name, example, schema }: Parameter): string {
  if (example !== undefined) return String(example);
  const { enum: choices = [], const: constant } = (resolveReference(document, schema) ?? {}) as {
    enum?: readonly unknown[];
    const?: unknown;
  };
  return String(constant ?? choices[0] ?? name);
}

/** Returns the examples of a JSON body. Without a body, returns a single example whose body is undefined. */
function bodiesOf(document: ContractDocument, requestBody: unknown): [name: string, body: unknown][] {
  const { content = {} } = (resolveReference(document, requestBody) ?? {}) as {
    content?: Readonly<Record<string, { examples?: Readonly<Record<string, { value?: unknown }>> }>>;
  };
  const examples = Object.entries(content['application/json']?.examples ?? {});
  return examples.length === 0 ? [['', undefined]] : examples.map(([name, { value }]) => [name, value]);
}

/**
 * Returns the path parameter that names the resource which a path creates: `/v1/wallets` creates the resource that
 * `/v1/wallets/{wallet_id}` names. Undefined if there is none.
 */
function createdBy(path: string, paths: readonly string[]): string | undefined {
  for (const other of paths) {
    const [, parameter] = other.startsWith(`${path}/`)
      ? (/^\/\{(\w+)\}$/.exec(other.slice(path.length)) ?? [])
      : [];
    if (parameter !== undefined) return parameter;
  }
  return undefined;
}
