import { ConfigError } from '../../../config/config.ts';
import { parsePath, withValueAt } from '../../../sandbox/events.ts';
import {
  buildRequest,
  type CallableOperation,
  type CallHeaders,
  listOperations,
  pathParametersOf,
  seededKey,
} from '../call-operation.ts';
import type { SandboxPlace } from '../sandbox-address.ts';
import type { SentRequest } from '../sandbox-client.ts';
import type { ArazzoDocument, Parameter, Step, Workflow } from './document.ts';
import { asText, type Exchange, fill, type Scope } from './expression.ts';

/** The request of a step, and the values in it that expressions can read. */
interface StepRequest {
  readonly sent: SentRequest;
  readonly seen: Pick<Exchange, 'url' | 'method' | 'request'>;
}

/** Thrown when a step cannot send its request. */
export class UnsendableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnsendableError';
  }
}

interface Sending {
  readonly place: SandboxPlace;
  readonly operation: CallableOperation;
  /** The parameters of the workflow. A parameter of the step with the same name and location takes precedence. */
  readonly parameters: readonly Parameter[];
}

/**
 * Builds the request of a step, with the credentials of the sandbox and the signatures of `x-sign-as`.
 *
 * @throws UnsendableError, NoValueError
 * @throws ConfigError for headers that the operation does not accept.
 */
export function requestOfStep(
  step: Step,
  scope: Scope,
  { place, operation, parameters }: Sending,
): StepRequest {
  const values = readParameters([...parameters, ...(step.parameters ?? [])], scope);
  const path = Object.fromEntries(
    pathParametersOf(operation).map((name) => {
      const value = values.path.get(name);
      if (value === undefined) throw new UnsendableError(`the path parameter \`${name}\` has no value`);
      return [name, asText(value)];
    }),
  );
  const body = bodyOf(step, scope);
  const query = [...values.query].flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, asText(item)]),
  );
  const headers: CallHeaders = {
    signers: (step['x-sign-as'] ?? []).map((name) => seededKey(name)),
    ...headersOf(values.header, place.prefix),
  };
  const sent = buildRequest(place, operation, { input: { path, query, body }, headers });
  return {
    sent,
    seen: {
      url: new URL(sent.target, place.url).href,
      method: sent.method,
      request: { headers: sent.headers, body, path, query: Object.fromEntries(values.query) },
    },
  };
}

function readParameters(parameters: readonly Parameter[], scope: Scope) {
  const values = {
    path: new Map<string, unknown>(),
    query: new Map<string, unknown>(),
    header: new Map<string, unknown>(),
  };
  for (const { name, in: place, value } of parameters) {
    if (place !== 'path' && place !== 'query' && place !== 'header')
      throw new UnsendableError(`parameter \`${name}\`: expected \`in\` to be path, query or header`);
    values[place].set(place === 'header' ? name.toLowerCase() : name, fill(value, scope));
  }
  return values;
}

/**
 * Returns the headers of a request. The idempotency key and the expiry are part of the signed payload, so they are
 * separated from other headers.
 */
function headersOf(
  given: ReadonlyMap<string, unknown>,
  prefix: string,
): Pick<CallHeaders, 'idempotencyKey' | 'expiryMs' | 'others'> {
  const others = Object.fromEntries([...given].map(([name, value]) => [name, asText(value)]));
  const [keyName, expiryName] = [`${prefix}-idempotency-key`, `${prefix}-request-expiry`];
  const { [keyName]: idempotencyKey, [expiryName]: expiry, ...rest } = others;
  return { idempotencyKey, expiryMs: expiry === undefined ? undefined : Number(expiry), others: rest };
}

function bodyOf({ requestBody }: Step, scope: Scope): unknown {
  if (requestBody?.payload === undefined) return undefined;
  const filled = fill(requestBody.payload, scope);
  const isText = typeof requestBody.payload === 'string' && typeof filled === 'string';
  const start = isText ? parseJson(filled) : filled;
  return (requestBody.replacements ?? []).reduce<unknown>(
    (body, { target, value }) => withValueAt(body, parsePath(target), fill(value, scope)),
    start,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnsendableError(`expected JSON as the payload: ${(error as Error).message}`);
  }
}

/**
 * Returns the id of the operation that a step calls: `createWallet`, `$sourceDescriptions.api.createWallet`, or a
 * pointer to it such as `{$sourceDescriptions.api.url}#/paths/~1v1~1wallets/post`.
 *
 * @throws ConfigError for an unknown source description or path.
 */
export function operationIdOf(
  { operationId, operationPath = '' }: Step,
  { sourceDescriptions }: Pick<ArazzoDocument, 'sourceDescriptions'>,
): string {
  const [, source, id] = /^\$sourceDescriptions\.([^.]+)\.(.+)$/s.exec(operationId ?? '') ?? [];
  if (operationId !== undefined && source === undefined) return operationId;
  const [, sourceOfPath, pointer] =
    /^\{?\$sourceDescriptions\.([^.]+)\.url\}?#(\/.+)$/s.exec(operationPath) ?? [];
  const name = source ?? sourceOfPath;
  if (name === undefined) {
    throw invalid(
      `expected an \`operationPath\` such as {$sourceDescriptions.api.url}#/paths/~1v1~1wallets/post, got \`${operationPath}\``,
    );
  }
  if (!sourceDescriptions.some((each) => each.name === name))
    throw invalid(`no source description is called \`${name}\``);
  if (id !== undefined) return id;
  const [, path, method = ''] = parsePath(pointer!);
  const found = listOperations().find(
    (each) => each.path === path && each.method.toLowerCase() === method.toLowerCase(),
  );
  if (found === undefined)
    throw invalid(`no operation has the path \`${path}\` and the method \`${method}\``);
  return found.id;
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid step:', [fault]);
}

/** Reports what is wrong with a value. `at` is the value's JSON pointer. */
export type Check = (value: unknown, at: string, report: (fault: string) => void) => void;

interface Fields {
  readonly required: Readonly<Record<string, Check>>;
  readonly optional?: Readonly<Record<string, Check>>;
}

export const any: Check = () => undefined;

export const text: Check = (value, at, report) => {
  if (typeof value !== 'string' || value === '') report(`${at}: expected text, got ${shown(value)}`);
};

export const count: Check = (value, at, report) => {
  if (typeof value !== 'number' || !(value >= 0))
    report(`${at}: expected a number from 0, got ${shown(value)}`);
};

export function oneOf(...allowed: readonly string[]): Check {
  return (value, at, report) => {
    if (!allowed.includes(value as string))
      report(`${at}: expected ${allowed.join(' or ')}, got ${shown(value)}`);
  };
}

export function list(item: Check, atLeast = 0): Check {
  return (value, at, report) => {
    if (!Array.isArray(value)) return report(`${at}: expected a list, got ${shown(value)}`);
    if (value.length < atLeast) report(`${at}: expected at least ${atLeast}, got ${value.length}`);
    for (const [index, each] of value.entries()) item(each, `${at}/${index}`, report);
  };
}

export function mapOf(item: Check): Check {
  return (value, at, report) => {
    if (!isObject(value)) return report(`${at}: expected an object, got ${shown(value)}`);
    for (const [name, each] of Object.entries(value)) item(each, `${at}/${name}`, report);
  };
}

/** Returns a check for an object that has these fields, and perhaps extensions, whose names begin with `x-`. */
export function object({ required, optional = {} }: Fields): Check {
  return (value, at, report) => {
    if (!isObject(value)) return report(`${at === '' ? '/' : at}: expected an object, got ${shown(value)}`);
    for (const name of Object.keys(required))
      if (value[name] === undefined) report(`${at}/${name}: is required`);
    for (const [name, each] of Object.entries(value)) {
      const check = required[name] ?? optional[name];
      if (check !== undefined) check(each, `${at}/${name}`, report);
      else if (!name.startsWith('x-')) report(`${at}/${name}: unknown field`);
    }
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : `\`${JSON.stringify(value).slice(0, 60)}\``;
}

type Inputs = Readonly<Record<string, unknown>>;

const checks: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};

/**
 * Returns the inputs of each workflow: the given values, and the defaults in its schema. Of the schema, only
 * `required`, `type` and `default` are read.
 *
 * @throws ConfigError for inputs that no workflow has, that are missing, or that have the wrong type.
 */
export function readInputs(workflows: readonly Workflow[], given: Inputs): ReadonlyMap<string, Inputs> {
  const faults: string[] = [];
  const known = workflows.flatMap(({ inputs }) => Object.keys(inputs?.properties ?? {}));
  for (const name of Object.keys(given))
    if (!known.includes(name)) faults.push(`no workflow has the input \`${name}\``);
  const read = workflows.map(({ workflowId, inputs = {} }): [string, Inputs] => {
    const { properties = {}, required = [] } = inputs;
    const values: Record<string, unknown> = {};
    for (const [name, { type, default: usual }] of Object.entries(properties)) {
      const value = given[name] === undefined ? usual : given[name];
      if (value === undefined) continue;
      values[name] = value;
      const types = [type ?? []].flat();
      if (types.length > 0 && !types.some((each) => checks[each]?.(value) === true))
        faults.push(`input \`${name}\`: expected ${types.join(' or ')}, got \`${JSON.stringify(value)}\``);
    }
    for (const name of required)
      if (values[name] === undefined) faults.push(`the workflow ${workflowId} needs the input \`${name}\``);
    return [workflowId, values];
  });
  if (faults.length > 0) throw new ConfigError('invalid inputs:', faults);
  return new Map(read);
}
