import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Document, Schema } from '../../../codegen/document.ts';
import { dispatchByTag, tagOf } from '../../../codegen/validators/dispatch-by-tag.ts';

const noComponents = { components: { schemas: {} } } as unknown as Document;
const own = (schema: Schema): Record<string, unknown> => ({ ...schema });

const animal = (type: string, property: string): Schema => ({
  type: 'object',
  required: ['type', property],
  properties: { type: { type: 'string', const: type }, [property]: { type: 'number' } },
});
/** Two kinds of dogs, and an animal with any tag. */
const animals: Schema[] = [
  animal('cat', 'lives'),
  animal('dog', 'tricks'),
  animal('dog', 'sheep'),
  animal('hen', 'eggs'),
  animal('cow', 'litres'),
  animal('bee', 'grams'),
  animal('ant', 'legs'),
  {
    type: 'object',
    required: ['type', 'name'],
    properties: { type: { type: 'string' }, name: { type: 'string' } },
  },
];

test('dispatching by tag accepts the same values as trying every branch', () => {
  const ajv = new Ajv2020({ strict: false });
  const tryingAll = ajv.compile({ anyOf: animals });
  const dispatching = ajv.compile(dispatchByTag(animals, noComponents, own));
  const names = ['lives', 'tricks', 'sheep', 'eggs', 'litres', 'grams', 'legs', 'name'];
  const value = fc.oneof(
    fc.record(
      {
        type: fc.constantFrom('cat', 'dog', 'hen', 'cow', 'bee', 'ant', 'yak', 7),
        ...Object.fromEntries(names.map((name) => [name, fc.constantFrom<unknown>(1, 'x', null)])),
      },
      { requiredKeys: [] },
    ),
    fc.anything(),
  );
  const seen = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(value, (data) => {
      const isValid = tryingAll(data);
      seen[isValid ? 'valid' : 'invalid'] += 1;
      expect(dispatching(data)).toBe(isValid);
    }),
    { numRuns: 2000 },
  );
  expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(100);
});

test('branches without a tag, or few of them, are tried one after the other', () => {
  expect(tagOf(animals.slice(0, 3), noComponents)).toBeUndefined();
  const untagged = animals.map(({ type, properties }): Schema => ({ type, properties }) as Schema);
  expect(dispatchByTag(untagged, noComponents, own)).toEqual({ anyOf: untagged });
});
