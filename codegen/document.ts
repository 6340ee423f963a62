/** The parts of an OpenAPI 3.1 document that the generator reads. It copies everything else unchanged. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  /** A format that only this contract defines. Other tools may ignore it. */
  'x-format'?: string;
  description?: string;
  deprecated?: boolean;
  example?: unknown;
  examples?: unknown;
  discriminator?: { propertyName: string; mapping?: Record<string, string> };
  'x-known-values'?: string[];
  'x-branded'?: boolean;
  /** Whether the value must never appear in a log or record. */
  'x-secret'?: boolean;
  [keyword: string]: unknown;
}

export interface Example {
  summary?: string;
  value?: unknown;
}

export interface MediaType {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, Example>;
}

export interface Parameter {
  $ref?: string;
  name: string;
  in: 'path' | 'query' | 'header' | 'cookie';
  required?: boolean;
  description?: string;
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, Example>;
}

interface RequestBody {
  required?: boolean;
  description?: string;
  content: Record<string, MediaType>;
}

export interface Response {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, MediaType>;
  /** The operations that can follow, by their ids. */
  links?: Record<string, { operationId: string; parameters: Record<string, string> }>;
}

export interface OperationObject {
  operationId?: string;
  tags?: string[];
  summary?: string;
  description?: string;
  deprecated?: boolean;
  parameters?: Parameter[];
  requestBody?: RequestBody;
  responses?: Record<string, Response>;
  security?: Record<string, string[]>[];
  'x-errors'?: string[];
  'x-max-body-bytes'?: number;
  /** Set if the operation changes nothing, although it is not a GET. */
  'x-read-only'?: true;
}

export type PathItem = Record<string, OperationObject>;

export interface Tag {
  name: string;
  description?: string;
}

export interface Components {
  schemas?: Record<string, Schema>;
  parameters?: Record<string, Parameter>;
  [section: string]: Record<string, unknown> | undefined;
}

export interface CatalogueEntry {
  status: number;
  message: string;
  wire_code?: boolean;
  /** The error code for OAuth clients (RFC 6749, section 5.2). */
  oauth_error?: string;
}

/** One hand-written family document, parsed from YAML. */
export interface FamilyDocument {
  openapi: string;
  info?: Record<string, unknown>;
  tags?: Tag[];
  'x-tag'?: Tag;
  security?: Record<string, string[]>[];
  paths?: Record<string, PathItem>;
  webhooks?: Record<string, PathItem>;
  components?: Components;
  'x-error-catalogue'?: Record<string, CatalogueEntry>;
  'x-branded-properties'?: string[];
  'x-links'?: Links;
}

/** By the path of a resource: the operations that return it, and the pointers to its id in their responses. */
export type Links = Record<string, Record<string, string>>;

/** The bundle: one self-contained document. */
export interface Document {
  openapi: string;
  info: Record<string, unknown>;
  servers: { url: string; description?: string }[];
  security: Record<string, string[]>[];
  tags: Tag[];
  paths: Record<string, PathItem>;
  webhooks?: Record<string, PathItem>;
  components: Components & { schemas: Record<string, Schema> };
}

/** Thrown for an invalid contract. `problems` has one line per fault, for the author of the contract. */
export class ContractError extends Error {
  readonly problems: readonly string[];

  constructor(summary: string, problems: readonly string[] = []) {
    super([summary, ...problems.map((problem) => `  ${problem}`)].join('\n'));
    this.name = 'ContractError';
    this.problems = problems;
  }
}

const SCHEMA_REF = '#/components/schemas/';

/** Returns the name in a reference: `#/components/schemas/Wallet` -> `Wallet`. */
export function schemaName(ref: string): string {
  if (!ref.startsWith(SCHEMA_REF))
    throw new ContractError(`expected a local schema reference, got \`${ref}\``);
  return ref.slice(SCHEMA_REF.length);
}

/** Returns the schema after any chain of references. */
export function resolveSchema(document: Document, schema: Schema): Schema {
  let current = schema;
  while (current.$ref !== undefined) {
    const target = document.components.schemas[schemaName(current.$ref)];
    if (target === undefined) throw new ContractError(`unresolved schema reference \`${current.$ref}\``);
    current = target;
  }
  return current;
}

/** Returns the parameter to which a reference into `components.parameters` leads. */
export function resolveParameter(document: Document, parameter: Parameter): Parameter {
  if (parameter.$ref === undefined) return parameter;
  const target = document.components.parameters?.[parameter.$ref.split('/').at(-1) ?? ''];
  if (target === undefined) throw new ContractError(`unresolved parameter reference \`${parameter.$ref}\``);
  return target;
}

/** Escapes one step of a JSON pointer (RFC 6901). */
export function pointerStep(step: string | number): string {
  return `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Returns the direct subschemas with their JSON pointers. */
export function subschemas(schema: Schema, pointer: string): [Schema, string][] {
  const found: [Schema, string][] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push([property, `${pointer}/properties${pointerStep(name)}`]);
  }
  if (typeof schema.additionalProperties === 'object') {
    found.push([schema.additionalProperties, `${pointer}/additionalProperties`]);
  }
  if (schema.items !== undefined) found.push([schema.items, `${pointer}/items`]);
  for (const keyword of ['oneOf', 'anyOf'] as const) {
    schema[keyword]?.forEach((branch, index) => {
      found.push([branch, `${pointer}/${keyword}/${index}`]);
    });
  }
  return found;
}

/** Returns every media type of the document (request bodies, responses, webhooks) with its pointer. */
export function mediaTypes(document: Document): { media: MediaType; pointer: string; sent: 'in' | 'out' }[] {
  const found: { media: MediaType; pointer: string; sent: 'in' | 'out' }[] = [];
  const collect = (
    content: Record<string, MediaType> | undefined,
    pointer: string,
    sent: 'in' | 'out',
  ): void => {
    for (const [type, media] of Object.entries(content ?? {})) {
      found.push({ media, pointer: `${pointer}/content${pointerStep(type)}`, sent });
    }
  };
  for (const { operation, pointer, kind } of operationObjects(document)) {
    collect(operation.requestBody?.content, `${pointer}/requestBody`, kind === 'path' ? 'in' : 'out');
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      collect(response.content, `${pointer}/responses/${status}`, 'out');
    }
  }
  return found;
}

/** Returns every operation of `paths` and `webhooks` with its pointer, in document order. */
export function operationObjects(document: Pick<Document, 'paths' | 'webhooks'>): {
  operation: OperationObject;
  pointer: string;
  kind: 'path' | 'webhook';
  route: string;
  method: string;
}[] {
  const sections = [
    ['path', 'paths', document.paths],
    ['webhook', 'webhooks', document.webhooks ?? {}],
  ] as const;
  return sections.flatMap(([kind, section, items]) =>
    Object.entries(items).flatMap(([route, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        operation,
        pointer: `#/${section}${pointerStep(route)}/${method}`,
        kind,
        route,
        method,
      })),
    ),
  );
}

/** Yields every schema of the document with its pointer, including nested ones. */
export function* allSchemas(document: Document): Generator<[Schema, string]> {
  const open: [Schema, string][] = Object.entries(document.components.schemas).map(([name, schema]) => [
    schema,
    `#/components/schemas${pointerStep(name)}`,
  ]);
  for (const { media, pointer } of mediaTypes(document)) {
    if (media.schema !== undefined) open.push([media.schema, `${pointer}/schema`]);
  }
  for (const [parameter, pointer] of allParameters(document)) {
    if (parameter.schema !== undefined) open.push([parameter.schema, `${pointer}/schema`]);
  }
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    yield next;
    open.push(...subschemas(...next));
  }
}

/** Returns every parameter with its pointer. A shared parameter occurs once, at its definition. */
export function allParameters(document: Document): [Parameter, string][] {
  const shared = Object.entries(document.components.parameters ?? {}).map(
    ([name, parameter]): [Parameter, string] => [parameter, `#/components/parameters${pointerStep(name)}`],
  );
  const own = operationObjects(document).flatMap(({ operation, pointer }) =>
    (operation.parameters ?? []).map((parameter, index): [Parameter, string] => [
      parameter,
      `${pointer}/parameters/${index}`,
    ]),
  );
  return [...shared, ...own.filter(([parameter]) => parameter.$ref === undefined)];
}

/** The first line of every generated file. The generator deletes stale files only when they start with it. */
export const HEADER_START = '// generated by codegen/main.ts from';

export function header(document: Pick<Document, 'info'>): string {
  return `${HEADER_START} the contract of ${String(document.info.title)} in openapi/; do not edit\n`;
}
