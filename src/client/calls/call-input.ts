import { ConfigError } from '../../config.ts';
import { InvalidPathError, parsePath, withValueAt } from '../../sandbox/payload-path.ts';
import { type CallableOperation, pathParametersOf } from './find-operation.ts';

/** What a call sends, apart from headers. */
export interface CallInput {
  readonly path: Readonly<Record<string, string>>;
  /** Names may repeat. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Undefined when no body is sent. */
  readonly body: unknown;
}

interface Assignment {
  readonly name: string;
  readonly value: unknown;
}

/**
 * Reads the arguments of a call: values of path parameters in the order of the path, and assignments `name=text` or
 * `name:=json`. An assignment sets the path parameter of its name that has no value yet, otherwise a field of `body`
 * (names joined by dots lead to nested fields), or a query parameter if the operation has no body.
 *
 * @throws ConfigError
 */
export function readCallInput(
  operation: CallableOperation,
  texts: readonly string[],
  body: unknown = undefined,
): CallInput {
  const assignments: Assignment[] = [];
  const values: string[] = [];
  for (const text of texts) {
    const assignment = readAssignment(text);
    if (assignment === undefined) values.push(text);
    else assignments.push(assignment);
  }
  const names = pathParametersOf(operation);
  if (values.length > names.length) throw unexpected(operation, values[names.length]!, names);
  const path: Record<string, string> = {};
  for (const [index, value] of values.entries()) path[names[index]!] = value;
  const fields = assignments.filter(({ name, value }) => {
    const isOfPath = names.includes(name) && path[name] === undefined;
    if (isOfPath) path[name] = String(value);
    return !isOfPath;
  });
  const missing = names.filter((name) => path[name] === undefined || path[name] === '');
  if (missing.length > 0) throw incomplete(operation, missing, names);
  if (!operation.hasBody) return { path, query: fields.flatMap(queryPairs), body: undefined };
  const whole = fields.reduce(withField, body);
  return { path, query: [], body: whole ?? (operation.bodyRequired ? {} : undefined) };
}

function readAssignment(text: string): Assignment | undefined {
  const [, name, mark, value = ''] = /^([A-Za-z_][\w.-]*|\/[^=]*?)(:?=)(.*)$/s.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name, value: mark === '=' ? value : readJson(name, value) };
}

function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`${name}: expected JSON, got \`${text}\`: ${(error as Error).message}`);
  }
}

function withField(body: unknown, { name, value }: Assignment): unknown {
  try {
    return withValueAt(body, parsePath(name), value);
  } catch (error) {
    if (error instanceof InvalidPathError) throw invalid(`${name}: ${error.message}`);
    throw error;
  }
}

/** A list becomes one pair for each element, as the server reads it. */
function queryPairs({ name, value }: Assignment): [string, string][] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((item) => [name, typeof item === 'string' ? item : JSON.stringify(item)]);
}

function unexpected(operation: CallableOperation, value: string, names: readonly string[]): ConfigError {
  const takes = names.length === 0 ? 'no path parameters' : `the path parameters ${names.join(', ')}`;
  return invalid(`\`${operation.id}\` takes ${takes}; expected name=value or name:=json, got \`${value}\``);
}

function incomplete(
  operation: CallableOperation,
  missing: readonly string[],
  names: readonly string[],
): ConfigError {
  const usage = ['custos call', operation.id, ...names.map((name) => `<${name}>`)].join(' ');
  return invalid(`${missing.join(', ')}: expected a value, got none; usage: ${usage}`);
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid arguments:', [fault]);
}
