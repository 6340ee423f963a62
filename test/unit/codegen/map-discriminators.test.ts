import { expect, test } from 'vitest';
import type { Document, Schema } from '../../../codegen/document.ts';
import { mapDiscriminators } from '../../../codegen/expansion/map-discriminators.ts';

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const tagged = (tag: Schema): Schema => ({ type: 'object', required: ['kind'], properties: { kind: tag } });

/** The mapping of a union of `branches`; `schemas` are the components. */
function mappingOf(branches: string[], schemas: Record<string, Schema>): unknown {
  const union: Schema = { oneOf: branches.map(ref), discriminator: { propertyName: 'kind' } };
  const document = {
    paths: {},
    components: { schemas: { ...schemas, Union: union } },
  } as unknown as Document;
  mapDiscriminators(document);
  return union.discriminator?.mapping;
}

test('a branch is mapped by the constant of the tag', () => {
  const schemas = { Ball: tagged({ const: 'ball' }), Bear: tagged({ type: 'string', const: 'bear' }) };
  expect(mappingOf(['Ball', 'Bear'], schemas)).toEqual({
    ball: '#/components/schemas/Ball',
    bear: '#/components/schemas/Bear',
  });
});

test('a branch is mapped by every value of the tag', () => {
  const schemas = {
    Ball: tagged({ enum: ['ball', 'marble'] }),
    Bear: tagged(ref('Kind')),
    Kind: { const: 'bear' },
  };
  expect(mappingOf(['Ball', 'Bear'], schemas)).toEqual({
    ball: '#/components/schemas/Ball',
    marble: '#/components/schemas/Ball',
    bear: '#/components/schemas/Bear',
  });
});

test('the tag is found in the parts of a branch, and the mapping names the branch', () => {
  const schemas = {
    Bear: { allOf: [{ type: 'object', properties: { name: { type: 'string' } } }, ref('BearKind')] },
    BearKind: { allOf: [tagged({ const: 'bear' })] },
    Round: { oneOf: [ref('Ball'), ref('Marble')] },
    Ball: tagged({ const: 'ball' }),
    Marble: tagged({ const: 'marble' }),
  };
  expect(mappingOf(['Bear', 'Round'], schemas)).toEqual({
    bear: '#/components/schemas/Bear',
    ball: '#/components/schemas/Round',
    marble: '#/components/schemas/Round',
  });
});

test.each<[string, Record<string, Schema>]>([
  ['no such property', { Bear: { type: 'object', properties: {} } }],
  ['any string', { Bear: tagged({ type: 'string' }) }],
  ['a number', { Bear: tagged({ const: 7 }) }],
  ['an alternative with any string', { Bear: { anyOf: [tagged({ const: 'bear' }), tagged({})] } }],
  ['a schema that is composed of itself', { Bear: { allOf: [ref('Bear')] } }],
])('a branch cannot be mapped by %s', (_what, schemas) => {
  expect(() => mappingOf(['Bear'], schemas)).toThrow(
    '#/components/schemas/Union: expected `Bear` to declare `kind` with a `const` or an `enum` of strings',
  );
});
