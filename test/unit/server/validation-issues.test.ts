import { expect, test } from 'vitest';
import type { ApiError } from '../../../src/errors.ts';
import { bodyShapes } from '../../../src/generated/body-shapes.ts';
import { requestValidators } from '../../../src/generated/request-validators.js';
import { bodyFault, parametersFault, shapeErrors } from '../../../src/server/validation-issues.ts';
import { documentedOperations, exampleInput } from '../../contract/every-operation/documented-operations.ts';
import { compile } from './toy-server.ts';

/** The refusal of `value` by `schema`, as sent to the caller. */
function refusalOf(schema: object, value: unknown): unknown {
  const validate = compile(schema);
  if (validate(value)) return 'valid';
  return bodyFault(validate.errors!).message;
}

const wordings: [keyword: string, schema: object, value: unknown, message: string][] = [
  ['required', { required: ['a'] }, {}, '/a: is required'],
  [
    'additionalProperties',
    { properties: {}, additionalProperties: false },
    { 'a/b~c': 1 },
    '/a~1b~0c: unknown property',
  ],
  ['type', { type: 'string' }, 1, 'body: must be a string'],
  ['type', { type: ['integer', 'null'] }, 'x', 'body: must be an integer or null'],
  ['enum', { properties: { a: { enum: ['x', 1, null] } } }, { a: 'y' }, '/a: must be one of x, 1, null'],
  ['const', { const: 'HPKE' }, 'x', 'body: must be HPKE'],
  ['minLength', { minLength: 1 }, '', 'body: must have at least 1 character'],
  ['maxLength', { maxLength: 2 }, 'abc', 'body: must have at most 2 characters'],
  ['minItems', { minItems: 1 }, [], 'body: must have at least 1 item'],
  ['maxItems', { maxItems: 1 }, [1, 2], 'body: must have at most 1 item'],
  ['minProperties', { minProperties: 1 }, {}, 'body: must have at least 1 property'],
  ['maxProperties', { maxProperties: 0 }, { a: 1 }, 'body: must have at most 0 properties'],
  ['uniqueItems', { uniqueItems: true }, [1, 2, 1], 'body: items 0 and 2 must not be the same'],
  ['minimum', { minimum: 1 }, 0, 'body: must be at least 1'],
  ['maximum', { maximum: 1 }, 2, 'body: must be at most 1'],
  ['exclusiveMinimum', { exclusiveMinimum: 1 }, 1, 'body: must be more than 1'],
  ['exclusiveMaximum', { exclusiveMaximum: 1 }, 1, 'body: must be less than 1'],
  ['multipleOf', { multipleOf: 5 }, 3, 'body: must be a multiple of 5'],
  ['pattern', { pattern: '^0x' }, 'x', 'body: must match the pattern ^0x'],
  ['false schema', { properties: { a: false } }, { a: 1 }, '/a: is not allowed'],
];

test.each(wordings)('%s: %j refuses %j with "%s"', (_keyword, schema, value, message) => {
  expect(refusalOf(schema, value)).toBe(message);
});

test('a long list of values is truncated', () => {
  const values = Array.from({ length: 50 }, (_, index) => index);
  expect(refusalOf({ enum: values }, 'x')).toBe(`body: must be one of ${values.slice(0, 40).join(', ')}, …`);
});

const quantity = { anyOf: [{ type: 'string', pattern: '^0x' }, { type: 'integer' }] };

test('a value that matches no branch of a union is reported for every branch', () => {
  expect(refusalOf({ properties: { value: quantity } }, { value: '12' })).toBe(
    '/value: must match the pattern ^0x, or must be an integer',
  );
});

test('of the branches of a union, the closest one is reported', () => {
  const owner = {
    anyOf: [
      { type: 'object', required: ['user_id'], properties: { user_id: { type: 'string' } } },
      { type: 'null' },
    ],
  };
  expect(refusalOf({ properties: { owner } }, { owner: { user_id: 5 } })).toBe(
    '/owner/user_id: must be a string',
  );
});

test('a discriminated union reports the branch of its tag', () => {
  const branch = (type: string, field: string) => ({
    type: 'object',
    properties: { type: { const: type }, [field]: { type: 'string' } },
    required: ['type', field],
  });
  const account = { type: 'object', discriminator: { propertyName: 'type' }, required: ['type'] };
  const schema = { ...account, oneOf: [branch('email', 'address'), branch('phone', 'number')] };
  expect(refusalOf(schema, { type: 'phone' })).toBe('/number: is required');
  expect(refusalOf(schema, { type: 'fax' })).toBe('/type: unknown value fax');
  expect(refusalOf(schema, { type: 7 })).toBe('/type: must be a string');
});

test('every fault is an issue with its pointer, at most twenty', () => {
  const errors = Array.from({ length: 30 }, (_, index) => ({
    keyword: 'type',
    instancePath: `/items/${index}`,
    schemaPath: '',
    params: { type: 'string' },
  }));
  const issues = bodyFault(errors).data?.issues as unknown[];
  expect(issues).toHaveLength(20);
  expect(issues[19]).toEqual({
    in: 'body',
    pointer: '/items/19',
    message: 'must be a string',
  });
});

function parametersRefusal(parameters: {
  path: object;
  query: object;
  headers: object;
}): ApiError | undefined {
  const validate = requestValidators.listWallets.params;
  return validate(parameters) ? undefined : parametersFault(validate.errors!);
}

test('a limit above 100 is refused with the published text', () => {
  const message = 'Query limit can be at maximum 100 records.';
  expect(parametersRefusal({ path: {}, query: { limit: '101' }, headers: {} })?.toBody()).toEqual({
    error: `limit: ${message}`,
    code: 'invalid_data',
    data: { issues: [{ in: 'query', pointer: '/limit', message }] },
  });
});

test('a bad query value is refused under its name', () => {
  expect(parametersRefusal({ path: {}, query: { limit: 'many' }, headers: {} })?.toBody()).toEqual({
    error: 'limit: must be an integer',
    code: 'invalid_data',
    data: { issues: [{ in: 'query', pointer: '/limit', message: 'must be an integer' }] },
  });
});

test('all missing properties of a body are named at once, in the order of the contract', () => {
  const validate = requestValidators.transferFromWallet!.body!;
  const body = {};
  expect(validate(body)).toBe(false);
  const fault = bodyFault(validate.errors!, body);
  expect(fault.message).toBe('/destination: is required; /source: is required');
  expect(fault.data).toEqual({
    issues: [
      { in: 'body', pointer: '/destination', message: 'is required' },
      { in: 'body', pointer: '/source', message: 'is required' },
    ],
  });
});

test('the shapes of bodies find nothing wrong in the examples of the contract', () => {
  const withBody = documentedOperations.flatMap((operation) => {
    const { body } = exampleInput(operation) as { body?: unknown };
    return body === undefined ? [] : [[operation.operationId, body] as const];
  });
  expect(withBody.length).toBeGreaterThan(80);
  for (const [id, body] of withBody) expect([id, shapeErrors(body, id, bodyShapes)]).toEqual([id, []]);
});

test('all wrong types and missing properties are named, the first fault first, and at most twenty', () => {
  const validate = requestValidators.createPolicy.body!;
  const body = { version: 1, name: 2, rules: [{ name: 3 }, 'x'] };
  expect(validate(body)).toBe(false);
  const fault = bodyFault(validate.errors!, body, (value) => shapeErrors(value, 'createPolicy', bodyShapes));
  expect(fault.message).toBe(
    '/chain_type: is required; /name: must be a string; /rules/0/action: is required; /rules/0/conditions: is required; /rules/0/method: is required; /rules/0/name: must be a string; /rules/1: must be an object; /version: must be a string',
  );
  const many = { ...body, rules: Array.from({ length: 1_000 }, () => 'x') };
  expect(shapeErrors(many, 'createPolicy', bodyShapes)).toHaveLength(20);
});
