/** The members of the OpenAPI document that this page reads. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
  readonly components?: { readonly parameters?: Readonly<Record<string, RawParameter>> };
}

interface RawOperation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly (RawParameter | { readonly $ref: string })[];
  readonly requestBody?: RawMessage;
  readonly responses?: Readonly<Record<string, RawMessage>>;
}

interface RawParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly example?: unknown;
}

interface RawMessage {
  readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, RawExample>> }>>;
}

interface RawExample {
  readonly summary?: string;
  readonly value?: unknown;
}

/** An example of a body. */
interface ApiExample {
  readonly name: string;
  readonly title: string;
  readonly value: unknown;
}

/** An operation of the API in the form that its page shows. */
export interface ApiOperation {
  readonly id: string;
  /** The subject under which the reference has the operation. */
  readonly tag: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Path parameters: names with example values. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly examples: readonly ApiExample[];
  readonly responses: readonly (ApiExample & { readonly status: string })[];
}

/** Returns the operations of a document, sorted by name. */
export function operationsOf({ paths, components }: ApiDocument): ApiOperation[] {
  const shared = components?.parameters ?? {};
  return Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, raw]) =>
        raw.operationId === undefined ? [] : [operationOf(raw, { path, method, shared })],
      ),
    )
    .sort((a, b) => a.id.localeCompare(b.id));
}

function operationOf(
  raw: RawOperation,
  place: { path: string; method: string; shared: Readonly<Record<string, RawParameter>> },
): ApiOperation {
  const parameters = (raw.parameters ?? []).flatMap((parameter) =>
    '$ref' in parameter ? (place.shared[parameter.$ref.split('/').at(-1)!] ?? []) : parameter,
  );
  const ofPath = parameters.filter((parameter) => parameter.in === 'path');
  return {
    id: raw.operationId!,
    tag: raw.tags?.[0] ?? '',
    method: place.method.toUpperCase(),
    path: place.path,
    summary: raw.summary ?? raw.operationId!,
    description: raw.description ?? '',
    parameters: Object.fromEntries(ofPath.map(({ name, example = '' }) => [name, String(example)])),
    examples: examplesOf(raw.requestBody),
    responses: Object.entries(raw.responses ?? {}).flatMap(([status, message]) =>
      examplesOf(message).map((example) => ({ ...example, status })),
    ),
  };
}

function examplesOf(message: RawMessage | undefined): ApiExample[] {
  const { examples = {} } = message?.content?.['application/json'] ?? {};
  return Object.entries(examples).map(([name, { summary, value }]) => ({
    name,
    title: summary ?? name.replaceAll('_', ' '),
    value,
  }));
}

/** Returns the operations whose name, path or summary contains `text`, ignoring case. */
export function matchingOperations(operations: readonly ApiOperation[], text: string): ApiOperation[] {
  const wanted = text.trim().toLowerCase();
  return operations.filter(({ id, path, summary }) =>
    `${id} ${path} ${summary}`.toLowerCase().includes(wanted),
  );
}

/** Returns the text of a request that the user can edit and send. */
export function draftRequest({ parameters }: Pick<ApiOperation, 'parameters'>, body: unknown): string {
  const draft = {
    ...(Object.keys(parameters).length === 0 ? {} : { path: parameters }),
    query: {},
    headers: {},
    ...(body === undefined ? {} : { body }),
  };
  return JSON.stringify(draft, null, 2);
}

/**
 * Parses the text that the user has edited.
 *
 * @throws Error for a string that is not a JSON object, or that has other members.
 */
export function readDraft(text: string): {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  headers?: Record<string, string>;
  body?: unknown;
} {
  const draft: unknown = JSON.parse(text);
  if (typeof draft !== 'object' || draft === null || Array.isArray(draft)) {
    throw new Error('expected a JSON object with `path`, `query`, `headers` and `body`');
  }
  const other = Object.keys(draft).find((name) => !['path', 'query', 'headers', 'body'].includes(name));
  if (other !== undefined)
    throw new Error(`expected \`path\`, \`query\`, \`headers\` or \`body\`, got \`${other}\``);
  return draft;
}
