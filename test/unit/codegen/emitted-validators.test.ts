import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { generateContract } from '../../../codegen/generate.ts';
import { writeOutput } from '../../../codegen/output.ts';
import type { ValidateFunction } from '../../../src/generated/validate-function.ts';
import { toyContract, toyProject } from './toy-contract.ts';

const project = toyProject();
afterAll(() => project[Symbol.dispose]());
writeOutput(toyContract, project.root, await generateContract(toyContract, project.root));

async function load<T>(name: string): Promise<T> {
  const url = pathToFileURL(join(project.root, 'src/generated', name)).href;
  return (await import(/* @vite-ignore */ url)) as T;
}

type Requests = Record<'putToy' | 'deleteToy', { params: ValidateFunction; body?: ValidateFunction }>;
type Responses = Record<'putToy' | 'deleteToy', Record<string, ValidateFunction>>;

const { requestValidators } = await load<{ requestValidators: Requests }>('request-validators.js');
const { responseValidators } = await load<{ responseValidators: Responses }>('response-validators.js');
const { webhookValidators } = await load<{ webhookValidators: Record<string, ValidateFunction> }>(
  'webhook-validators.js',
);

/** The errors of a validator for a value, in one line; `ok` without errors. */
function verdict(validate: ValidateFunction | undefined, value: unknown): string {
  if (validate === undefined) throw new Error('no such validator');
  if (validate(value)) return 'ok';
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('; ');
}

test('query values are coerced in place, unknown ones and headers are accepted', () => {
  const input = {
    path: { toy_id: 't1' },
    query: { colours: 'red', count: '3', other: 'x' },
    headers: { 'service-idempotency-key': '12345678', accept: '*/*' },
  };
  expect(verdict(requestValidators.putToy.params, input)).toBe('ok');
  expect(input.query).toEqual({ colours: ['red'], count: 3, other: 'x' });
});

test.each([
  [{ toy_id: 't' }, {}, {}, '/path/toy_id must NOT have fewer than 2 characters'],
  [{ toy_id: 't1' }, { count: 'many' }, {}, '/query/count must match format "integer-text"'],
  [{ toy_id: 't1' }, { count: '1e400' }, {}, '/query/count must match format "integer-text"'],
  [{ toy_id: 't1' }, { count: ['0x1'] }, {}, '/query/count/0 must match format "integer-text"'],
  [{ toy_id: 't1' }, { count: ['1', '2'] }, {}, '/query/count must be integer'],
  [{ toy_id: 't1' }, { count: '10' }, {}, '/query/count must be <= 9'],
  [
    { toy_id: 't1' },
    {},
    { 'service-idempotency-key': '123456789' },
    '/headers/service-idempotency-key must NOT have more than 8 characters',
  ],
])('path %j, query %j, headers %j are refused: %s', (path, query, headers, fault) => {
  expect(verdict(requestValidators.putToy.params, { path, query, headers })).toBe(fault);
});

test.each([
  ['a field of another type', { kind: 'ball', radius: '2' }, '/radius must be number'],
  ['an unknown field', { kind: 'ball', radius: 2, weight: 1 }, ' must NOT have additional properties'],
  [
    'a time in no unit of ours',
    { kind: 'ball', radius: 2, made_at: -1 },
    '/made_at must match format "unix-ms"',
  ],
  ['an unknown branch, reported in one line', { kind: 'doll' }, ' value of tag "kind" must be in oneOf'],
  ['a branch without its tag, reported in one line', {}, ' tag "kind" must be string'],
])('a body with %s is refused', (_what, body, fault) => {
  const before = structuredClone(body);
  expect(verdict(requestValidators.putToy.body, body)).toBe(fault);
  expect(body).toEqual(before);
});

test('an open object is open in requests and closed in responses', () => {
  const bear = { kind: 'bear', name: null, friend: { kind: 'bear', name: 'Ted', age: 4 } };
  expect(verdict(requestValidators.putToy.body, bear)).toBe('ok');
  expect(verdict(responseValidators.putToy['200'], { first: bear })).toContain(
    '/first/friend must NOT have additional properties',
  );
});

test('a response with free keys stays open, and any undocumented response is a fault', () => {
  const answer = responseValidators.putToy['200'];
  expect(verdict(answer, { first: null, labels: { shelf: 'top', row: 2 }, size: 'small' })).toBe('ok');
  expect(verdict(answer, { size: 'medium' })).toBe('/size must be equal to one of the allowed values');
  expect(Object.keys(responseValidators.putToy)).toEqual(['200', '400', '404']);
  expect(verdict(responseValidators.putToy['404'], { error: 'Not found' })).toBe('ok');
  expect(verdict(responseValidators.putToy['404'], { message: 'Not found' })).toContain("property 'error'");
});

test('an operation without a body has no body validator, a response without a body is `undefined`', () => {
  expect(requestValidators.deleteToy.body).toBeUndefined();
  expect(verdict(responseValidators.deleteToy['204'], undefined)).toBe('ok');
  expect(verdict(responseValidators.deleteToy['204'], {})).toBe(' must have no body');
});

test('an event is validated against its payload schema', () => {
  expect(Object.keys(webhookValidators)).toEqual(['toy.put']);
  expect(verdict(webhookValidators['toy.put'], { kind: 'ball', radius: 1 })).toBe('ok');
  expect(verdict(webhookValidators['toy.put'], { kind: 'bear', radius: 1 })).toBe(
    '/kind must be equal to constant',
  );
});
