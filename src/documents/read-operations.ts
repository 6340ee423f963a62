import {
  type Content,
  type Located,
  locate,
  type MediaType,
  type OpenApiDocument,
  type OperationObject,
  type Parameter,
  type PathItem,
  pointerTo,
  type SecurityScheme,
} from './open-api.ts';

/** An operation of any document. */
export interface DocumentOperation {
  /** Its `operationId`, or method and path. */
  readonly id: string;
  /** Upper case. */
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Located<Parameter>[];
  readonly body:
    | { readonly required: boolean; readonly content: readonly Located<MediaContent>[] }
    | undefined;
  /** By status: `200`, `4XX`, `default`. */
  readonly responses: ReadonlyMap<string, readonly Located<MediaContent>[]>;
  /** Any of these suffices, and of each all schemes; empty: no credentials. */
  readonly security: readonly (readonly SecurityScheme[])[];
}

/** A media type, or a range of them, with what the document says about it. */
export interface MediaContent extends MediaType {
  /** Lower case, without parameters. */
  readonly type: string;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** Every operation in the order of the document. */
export function readOperations(document: OpenApiDocument): DocumentOperation[] {
  return Object.keys(document.paths ?? {}).flatMap((path) => {
    const item = locate<PathItem>(document, pointerTo('paths', path));
    if (item === undefined) return [];
    return methods
      .filter((method) => item.node[method] !== undefined)
      .map((method) => readOperation(document, item, { method, path }));
  });
}

function readOperation(
  document: OpenApiDocument,
  item: Located<PathItem>,
  { method, path }: { method: string; path: string },
): DocumentOperation {
  const pointer = `${item.pointer}/${method}`;
  const node = item.node[method] as OperationObject;
  const body = locate<{ required?: boolean; content?: Content }>(document, `${pointer}/requestBody`);
  const statuses = Object.keys(node.responses ?? {});
  return {
    ...{ id: node.operationId ?? `${method.toUpperCase()} ${path}`, method: method.toUpperCase(), path },
    parameters: parametersOf(document, [item.pointer, pointer]),
    body:
      body === undefined
        ? undefined
        : { required: body.node.required === true, content: contentOf(document, body) },
    responses: new Map(
      statuses.map((status) => {
        const response = locate<{ content?: Content }>(document, `${pointer}/responses${pointerTo(status)}`);
        const content = response === undefined ? [] : contentOf(document, response);
        return [status.toUpperCase() === 'DEFAULT' ? 'default' : status.toUpperCase(), content];
      }),
    ),
    security: securityOf(document, node.security ?? document.security ?? []),
  };
}

/** Those of an operation replace those of its path that have the same name and place. */
function parametersOf(document: OpenApiDocument, pointers: readonly string[]): Located<Parameter>[] {
  const found = new Map<string, Located<Parameter>>();
  for (const pointer of pointers) {
    const list = locate<{ parameters?: readonly unknown[] }>(document, pointer)?.node.parameters ?? [];
    for (const index of list.keys()) {
      const parameter = locate<Parameter>(document, `${pointer}/parameters/${index}`);
      if (parameter !== undefined) found.set(`${parameter.node.in} ${parameter.node.name}`, parameter);
    }
  }
  return [...found.values()];
}

function contentOf(
  document: OpenApiDocument,
  { node, pointer }: Located<{ content?: Content }>,
): Located<MediaContent>[] {
  return Object.keys(node.content ?? {}).flatMap((type) => {
    const media = locate<MediaType>(document, `${pointer}/content${pointerTo(type)}`);
    const bare = (type.split(';')[0] ?? '').trim().toLowerCase();
    return media === undefined ? [] : [{ node: { ...media.node, type: bare }, pointer: media.pointer }];
  });
}

function securityOf(
  { components }: OpenApiDocument,
  requirements: NonNullable<OpenApiDocument['security']>,
): SecurityScheme[][] {
  const schemes = components?.securitySchemes ?? {};
  const known = requirements.map((requirement) =>
    Object.keys(requirement).flatMap((name) => schemes[name] ?? []),
  );
  return known.some((alternative) => alternative.length === 0) ? [] : known;
}

/** The response that a status has: itself, its class (`4XX`), or the default. */
export function responseFor(
  { responses }: DocumentOperation,
  status: number,
): { readonly key: string; readonly content: readonly Located<MediaContent>[] } | undefined {
  for (const key of [String(status), `${Math.floor(status / 100)}XX`, 'default']) {
    const content = responses.get(key);
    if (content !== undefined) return { key, content };
  }
  return undefined;
}

/** What the document says about a media type: itself, its range, or anything. */
export function mediaFor(
  content: readonly Located<MediaContent>[],
  header: string | undefined,
): Located<MediaContent> | undefined {
  const type = (header?.split(';')[0] ?? '').trim().toLowerCase();
  const range = `${type.split('/')[0]}/*`;
  for (const wanted of [type, range, '*/*']) {
    const found = content.find(({ node }) => node.type === wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** `application/json`, `application/problem+json`. */
export function isJson(type: string): boolean {
  return /^application\/([\w.-]+\+)?json$/.test(type);
}
