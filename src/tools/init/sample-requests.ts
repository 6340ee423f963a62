import { operations } from '../../generated/operations.ts';
import { type ContractDocument, operationsOf, resolveReference } from '../contract/contract-document.ts';

/** A request of an operation, with the values of an example of the document. */
export interface SampleRequest {
  readonly operation: string;
  readonly tag: string;
  /** The operation, and the name of the example if there are several. */
  readonly name: string;
  readonly summary: string;
  readonly method: string;
  /** With parameters in braces, as in the document. */
  readonly path: string;
  readonly pathValues: Readonly<Record<string, string>>;
  /** The query parameters that are required. */
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly body: unknown;
  /** Whether the app id and secret are sent. */
  readonly hasCredentials: boolean;
  /** The path parameter whose value the response has as `id`. */
  readonly creates: string | undefined;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly example?: unknown;
  readonly schema?: unknown;
}

// The resources of every sandbox with `--seed-data`. The wallet has no owner, so the app secret suffices.
const seeded: Readonly<Record<string, string>> = { wallet_id: 'ext_wal_acme-ethereum' };

/** `{{appId}}` in bodies and paths is the app that sends the request. */
const ownApp = '{{appId}}';

/** One request for each example of each operation, in the order of the document. */
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

/** The app that the examples of the document belong to. */
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

/** The examples of a JSON body; a single empty example if there is no body. */
function bodiesOf(document: ContractDocument, requestBody: unknown): [name: string, body: unknown][] {
  const { content = {} } = (resolveReference(document, requestBody) ?? {}) as {
    content?: Readonly<Record<string, { examples?: Readonly<Record<string, { value?: unknown }>> }>>;
  };
  const examples = Object.entries(content['application/json']?.examples ?? {});
  return examples.length === 0 ? [['', undefined]] : examples.map(([name, { value }]) => [name, value]);
}

/** `/v1/wallets` creates what `/v1/wallets/{wallet_id}` names. */
function createdBy(path: string, paths: readonly string[]): string | undefined {
  for (const other of paths) {
    const [, parameter] = other.startsWith(`${path}/`)
      ? (/^\/\{(\w+)\}$/.exec(other.slice(path.length)) ?? [])
      : [];
    if (parameter !== undefined) return parameter;
  }
  return undefined;
}
