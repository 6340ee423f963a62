import { expect, test } from 'vitest';
import { ApiError, invalidField, invalidQuery } from '../../../src/errors.ts';
import { bodyFault } from '../../../src/server/validation-issues.ts';

// A refusal that repeats a megabyte of its request takes as long to write as the request takes to read.
const long = 'a'.repeat(1_000_000);

test.each([
  ['a message', new ApiError('invalid_data', `expected a name, got \`${long}\``)],
  ['a field', invalidField(`/names/${long}`, `expected a name, got \`${long}\``)],
  ['a query parameter', invalidQuery('name', `expected a name, got \`${long}\``)],
  [
    'an unknown property',
    bodyFault([
      {
        keyword: 'additionalProperties',
        instancePath: `/names/${long}`,
        schemaPath: '',
        params: { additionalProperty: long },
      },
    ]),
  ],
])('%s that repeats its input is cut', (_, error) => {
  expect(JSON.stringify(error.toBody()).length).toBeLessThan(20_000);
  expect(error.message).toMatch(/…/);
});

test('a message of ordinary length is not', () => {
  const message = 'expected a name '.repeat(200);
  expect(new ApiError('invalid_data', message).message).toBe(message);
});
