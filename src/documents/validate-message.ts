import type { ValidateFunction } from '../generated/validate-function.ts';
import { faultText } from './fault-text.ts';
import type { FoundOperation } from './find-operation.ts';
import { locate, type Parameter } from './open-api.ts';
import type { OpenedDocument } from './open-document.ts';
import { isJson, mediaFor, responseFor } from './read-operations.ts';

interface Schema {
  readonly type?: string | readonly string[];
}

/** A parameter with the types of its values. */
interface TypedParameter extends Parameter {
  readonly types: readonly unknown[];
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface RequestMessage {
  /** Path and query. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Headers;
  readonly body: Buffer;
}

export interface ResponseMessage {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** How a message differs from the document. `status`: what a server answers to such a request. */
export interface MessageFault {
  readonly status: 400 | 415;
  readonly message: string;
}

/** The first fault of a request; undefined if it is as the document says. */
export function requestFault(
  opened: OpenedDocument,
  { operation, params }: FoundOperation,
  request: RequestMessage,
): MessageFault | undefined {
  for (const { node, pointer } of operation.parameters) {
    const schema = locate<Schema>(opened.document, `${pointer}/schema`)?.node;
    const parameter = { ...node, types: [schema?.type].flat() };
    const message = parameterFault(parameter, opened.parameters.get(`${pointer}/schema`), {
      request,
      params,
    });
    if (message !== undefined) return { status: 400, message: `${node.in} ${node.name}: ${message}` };
  }
  const { body } = operation;
  if (body === undefined) return undefined;
  if (request.body.length === 0) {
    return body.required ? { status: 400, message: 'body: the request has no body' } : undefined;
  }
  const media = mediaFor(body.content, textOf(request.headers['content-type']));
  if (media === undefined) {
    const types = body.content.map(({ node }) => node.type).join(', ');
    const got = textOf(request.headers['content-type']);
    return {
      status: 415,
      message: `content-type: expected ${types}, got ${got === undefined ? 'none' : `\`${got}\``}`,
    };
  }
  if (!isJson(media.node.type)) return undefined;
  const message = jsonFault(request.body, opened.bodies.get(`${media.pointer}/schema`));
  return message === undefined ? undefined : { status: 400, message: `body ${message}` };
}

/** The first fault of a response. `rule`: what kind of fault it is. */
export function responseFault(
  opened: OpenedDocument,
  { operation }: FoundOperation,
  { status, headers, body }: ResponseMessage,
): { readonly rule: 'status-undocumented' | 'response-invalid'; readonly message: string } | undefined {
  const response = responseFor(operation, status);
  if (response === undefined) {
    const known = [...operation.responses.keys()].join(', ');
    return { rule: 'status-undocumented', message: `expected ${known}, got ${status}` };
  }
  // Responses to HEAD, and those without content, end with their head.
  if (operation.method === 'HEAD' || response.content.length === 0 || status === 204 || status === 304)
    return undefined;
  const type = textOf(headers['content-type']);
  const media = mediaFor(response.content, type);
  if (media === undefined) {
    const types = response.content.map(({ node }) => node.type).join(', ');
    const got = type === undefined ? 'none' : `\`${type}\``;
    return { rule: 'response-invalid', message: `content-type: expected ${types}, got ${got}` };
  }
  if (!isJson(media.node.type)) return undefined;
  const message = jsonFault(body, opened.bodies.get(`${media.pointer}/schema`));
  return message === undefined ? undefined : { rule: 'response-invalid', message };
}

function jsonFault(body: Buffer, validate: ValidateFunction | undefined): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`;
  }
  if (validate === undefined || validate(value)) return undefined;
  return faultText(validate.errors);
}

function parameterFault(
  parameter: TypedParameter,
  validate: ValidateFunction | undefined,
  {
    request,
    params,
  }: { readonly request: RequestMessage; readonly params: Readonly<Record<string, string>> },
): string | undefined {
  const value = valueOfParameter(parameter, request, params);
  if (value === undefined) return parameter.required === true ? 'is required' : undefined;
  if (validate === undefined) return undefined;
  // Coercion replaces values in what is validated.
  const holder = { value };
  const run = validate as unknown as (data: unknown, context: object) => boolean;
  const isValid = run(holder.value, {
    instancePath: '',
    parentData: holder,
    parentDataProperty: 'value',
    rootData: holder.value,
    dynamicAnchors: {},
  });
  return isValid ? undefined : faultText(validate.errors);
}

/** The text of a parameter, or its list; undefined if it was not sent, or has a form that is not read here. */
function valueOfParameter(
  parameter: TypedParameter,
  { target, headers }: RequestMessage,
  params: Readonly<Record<string, string>>,
): unknown {
  const { name, in: place, types } = parameter;
  const isList = types.includes('array');
  if (place === 'path') return isList ? params[name]?.split(',') : params[name];
  if (place === 'header') {
    const text = textOf(headers[name.toLowerCase()]);
    return isList ? text?.split(',').map((item) => item.trim()) : text;
  }
  if (place === 'cookie') return cookieOf(textOf(headers.cookie), name);
  return queryValue(parameter, new URLSearchParams(target.split('?')[1] ?? ''));
}

function queryValue(
  { name, style = 'form', explode = style === 'form', types }: TypedParameter,
  query: URLSearchParams,
): unknown {
  if (style === 'deepObject') {
    const entries = [...query].flatMap(([key, value]) => {
      const [, property] = key.startsWith(`${name}[`) ? (/\[([^[\]]+)\]$/.exec(key) ?? []) : [];
      return property === undefined ? [] : [[property, value] as const];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }
  const values = [...query.getAll(name), ...query.getAll(`${name}[]`)];
  // Objects whose properties are parameters of their own look like other parameters.
  if (values.length === 0 || types.includes('object')) return undefined;
  if (!types.includes('array')) return values.length === 1 ? values[0] : values;
  if (explode) return values;
  const separator = style === 'spaceDelimited' ? ' ' : style === 'pipeDelimited' ? '|' : ',';
  return values.flatMap((value) => value.split(separator));
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const [key = '', ...value] = part.trim().split('=');
    if (key === name) return value.join('=');
  }
  return undefined;
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value;
}
