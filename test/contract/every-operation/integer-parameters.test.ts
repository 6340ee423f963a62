import { afterAll, beforeAll, expect, test } from 'vitest';
import { attempt } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleParameters } from './documented-operations.ts';

// JavaScript converts most of these to numbers, but none of them is a JSON number with an integral value (JSON Schema
// 2020-12, section 4.2.3).
const spellings = [
  'Infinity',
  '-Infinity',
  '0x10',
  '1.5',
  '1e-1',
  '1.',
  '.5',
  '1e400',
  '+1',
  '01',
  ' 1',
  '-',
  '9'.repeat(400),
];

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const integers = documentedOperations.flatMap((operation) =>
  (operation.parameters ?? [])
    .filter(({ schema }) => (schema as { type?: string }).type === 'integer')
    .map(({ name, in: place }) => ({ id: operation.operationId, name, place, operation })),
);

test('every operation with integer parameters is here', () => {
  expect(integers.every(({ place }) => place === 'query')).toBe(true);
  expect(integers.filter(({ name }) => name === 'limit').length).toBeGreaterThanOrEqual(9);
});

test.each(integers)(
  '$id refuses other notations of numbers in `$name`, by name',
  async ({ name, operation, id }) => {
    const { path, query } = exampleParameters(operation);
    for (const value of spellings.flatMap((text) => [text, [text]])) {
      const answer = await attempt(sandbox, id, { path, query: { ...query, [name]: value } });
      const { code, data } = answer.body as { code?: string; data?: { issues?: object[] } };
      expect({ value, status: answer.status, code, issues: data?.issues }).toMatchObject({
        value,
        status: 400,
        code: 'invalid_data',
        issues: [{ in: 'query', message: 'must be an integer' }],
      });
      expect(JSON.stringify(data?.issues)).toContain(`"/${name}`);
    }
  },
);

test('an integer is taken in any notation of JSON, alone or as a list of one', async () => {
  for (const limit of ['1', '100', '1.0', '1.000', '1e1', '1.0E+1', '50.0e-1', ['7'], ['7.0']]) {
    expect((await attempt(sandbox, 'listWallets', { query: { limit } })).status).toBe(200);
  }
  const { body } = await attempt(sandbox, 'listWallets', { query: { limit: '9'.repeat(30) } });
  expect(body).toMatchObject({
    error: expect.stringContaining('Query limit can be at maximum 100 records.'),
  });
});
