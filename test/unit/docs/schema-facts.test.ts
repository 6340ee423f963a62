import { expect, test } from 'vitest';
import type { Schemas } from '../../../src/web/docs/operation-document.ts';
import { kindOf, rowsOf, rulesOf } from '../../../src/web/docs/schema-facts.ts';

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const schemas: Schemas = {
  Circle: {
    type: 'object',
    properties: { kind: { const: 'circle' }, radius: { type: 'number', minimum: 0 } },
  },
  Square: { type: 'object', properties: { kind: { const: 'square' } }, required: ['kind'] },
  Shape: {
    oneOf: [ref('Circle'), ref('Square')],
    discriminator: {
      propertyName: 'kind',
      mapping: { circle: '#/components/schemas/Circle', square: '#/components/schemas/Square' },
    },
  },
  Tree: { type: 'object', properties: { leaves: { type: 'array', items: ref('Tree') } } },
};

const names = (schema: object): string[] => rowsOf(schema, schemas).map(({ name }) => name);

test('branches are named by their discriminator, or else by their constants', () => {
  expect(names(ref('Shape'))).toEqual(['kind: circle', 'kind: square']);
  expect(names({ anyOf: [ref('Square'), { type: 'object' }] })).toEqual(['kind: square', '(2)']);
});

test('properties of the items of an array are rows of the array, also in a schema that contains itself', () => {
  expect(names(ref('Tree'))).toEqual(['leaves']);
  expect(names(rowsOf(ref('Tree'), schemas)[0]!.schema)).toEqual(['leaves']);
  expect(names({ type: 'array', items: { type: 'string' } })).toEqual([]);
  expect(names({ type: 'array', items: ref('Shape') })).toEqual(['(item)']);
});

test('a kind is a few words', () => {
  expect(kindOf({ type: 'array', items: { type: 'integer' } }, schemas)).toBe('array of integer');
  expect(kindOf({ type: ['string', 'null'] }, schemas)).toBe('string or null');
  expect(kindOf(ref('Shape'), schemas)).toBe('one of 2');
  expect(kindOf({ anyOf: [{ type: 'string' }, { type: 'null' }] }, schemas)).toBe('string or null');
  expect(kindOf({ const: 'circle' }, schemas)).toBe('"circle"');
});

test('rules name each limit', () => {
  expect(rulesOf({ type: 'string', minLength: 24, maxLength: 24, pattern: '^a' }, schemas)).toEqual([
    ...['exactly 24 characters', 'pattern `^a`'],
  ]);
  expect(rulesOf({ minimum: 1, maximum: 100, default: 20 }, schemas)).toEqual(['1 to 100', 'default `20`']);
  expect(rulesOf({ type: 'number', format: 'int64', 'x-format': 'unix-ms' }, schemas)).toEqual([
    'format `unix-ms`',
  ]);
  expect(rulesOf({ maxItems: 5, deprecated: true }, schemas)).toEqual(['at most 5 items', 'deprecated']);
});
