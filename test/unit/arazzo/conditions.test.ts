import { describe, expect, test } from 'vitest';
import {
  evaluate,
  fill,
  InvalidConditionError,
  NoValueError,
  parseCondition,
  type Scope,
} from '../../../src/tools/client/arazzo/expression.ts';

const scope: Scope = {
  inputs: { username: 'ada', 'with.dot': 1, list: [{ id: 'first' }] },
  steps: new Map([['someStepId', { pets: [{ name: 'Rex' }, { name: 'Tom' }], count: '3' }]]),
  workflows: new Map([['other', { inputs: { a: 1 }, outputs: { b: 2 } }]]),
  sources: { petstore: { url: 'https://pets.example/openapi.json' } },
  exchange: {
    url: 'https://api.example/pets/1?limit=5',
    method: 'POST',
    request: {
      headers: { accept: 'application/json' },
      body: { user: { uuid: 'u-1' } },
      path: { id: '1' },
      query: { limit: '5' },
    },
    status: 200,
    response: {
      headers: { server: 'teapot' },
      body: { status: 'OK', 'a/b': 7, data: [{ id: 9, ok: false }] },
    },
  },
};

// Examples of Arazzo 1.0.1, section 4.7, and the pointers of RFC 6901.
const values: readonly [expression: string, value: unknown][] = [
  ['$url', 'https://api.example/pets/1?limit=5'],
  ['$method', 'POST'],
  ['$statusCode', 200],
  ['$request.header.accept', 'application/json'],
  ['$request.header.Accept', 'application/json'],
  ['$request.path.id', '1'],
  ['$request.query.limit', '5'],
  ['$request.body#/user/uuid', 'u-1'],
  ['$response.body#/status', 'OK'],
  ['$response.body#/a~1b', 7],
  ['$response.body#/data/0/id', 9],
  ['$response.body#/data[0].id', 9],
  ['$response.body.data[0].ok', false],
  ['$response.header.Server', 'teapot'],
  ['$inputs.username', 'ada'],
  ['$inputs.with.dot', 1],
  ['$inputs.list#/0/id', 'first'],
  ['$steps.someStepId.outputs.pets', [{ name: 'Rex' }, { name: 'Tom' }]],
  ['$steps.someStepId.outputs.pets[1].name', 'Tom'],
  ['$workflows.other.outputs.b', 2],
  ['$workflows.other.inputs.a', 1],
  ['$sourceDescriptions.petstore.url', 'https://pets.example/openapi.json'],
  ['$steps.absent.outputs.pets', undefined],
  ['$response.body#/constructor', undefined],
];

test.each(values)('%s', (expression, value) => {
  expect(evaluate(expression, scope)).toEqual(value);
});

test('expressions in values keep their types alone, and become text inside text', () => {
  const value = {
    whole: '$response.body#/data/0/id',
    inside: 'pet {$response.body#/data/0/id} of {$inputs.username}',
    text: ['$5', '{$5}', 'costs $inputs.username', 7],
  };
  expect(fill(value, scope)).toEqual({
    whole: 9,
    inside: 'pet 9 of ada',
    text: ['$5', '{$5}', 'costs $inputs.username', 7],
  });
  expect(() => fill({ id: '$steps.absent.outputs.id' }, scope)).toThrow(NoValueError);
});

describe('conditions', () => {
  const cases: readonly [condition: string, holds: boolean][] = [
    ['$statusCode == 200', true],
    ['$statusCode != 200', false],
    ['$statusCode >= 200 && $statusCode < 300', true],
    ["$response.body#/status == 'ok'", true],
    ["$response.body#/status != 'ok'", false],
    ["$inputs.username == 'it''s'", false],
    ["($statusCode == 404 || $statusCode == 200) && $inputs.username == 'ada'", true],
    ['$statusCode == 404 && $statusCode == 404 || $statusCode == 200', true],
    ['!$response.body#/data/0/ok', true],
    ['!($statusCode == 200)', false],
    ['$steps.someStepId.outputs.count > 2', true],
    ['$response.body#/absent == null', false],
    ['$response.body#/absent', false],
    ["'b' > 'A'", true],
    ['$response.body#/data > 2', false],
    ['true', true],
    ['-1.5 < 0', true],
  ];

  test.each(cases)('conditions: %s', (condition, holds) => {
    expect(parseCondition(condition).holds(scope)).toBe(holds);
  });

  test.each([
    ['', 'expected a value, got the end'],
    ['$statusCode ==', 'expected a value, got the end'],
    ['$statusCode 200', 'expected an operator, got `200`'],
    ['($statusCode == 200', 'expected `)`'],
    ['$status == 200', 'expected a runtime expression, got `$status`'],
    ["$method == 'GET", "expected a value or an operator, got ` 'GET`"],
    ['$method == GET', "expected a number, `'text'`, true, false or null, got `GET`"],
    ['== 1', 'expected a value, got `==`'],
  ])('conditions: %s is refused', (condition, message) => {
    expect(() => parseCondition(condition)).toThrow(new InvalidConditionError(message));
  });
});
