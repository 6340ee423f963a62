import { expect, test } from 'vitest';
import { branchesIn, branchesOf } from '../../../src/tools/contract/branches.ts';
import type { ContractDocument, Schema } from '../../../src/tools/contract/contract-document.ts';
import { readDocument } from '../../ledger/documented.ts';

const tagged = (type: string, properties: object = {}) => ({
  type: 'object',
  required: ['type'],
  properties: { type: { const: type }, ...properties },
});

const document: ContractDocument = {
  paths: {},
  components: {
    schemas: {
      Pet: {
        oneOf: [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Litter' }],
        discriminator: {
          propertyName: 'type',
          mapping: { cat: '#/components/schemas/Cat', litter: '#/components/schemas/Litter' },
        },
      },
      Cat: tagged('cat'),
      Litter: tagged('litter', { pets: { type: 'array', items: { $ref: '#/components/schemas/Pet' } } }),
    },
  },
};
const owner: Schema = {
  type: 'object',
  properties: {
    pets: { type: 'array', items: { $ref: '#/components/schemas/Pet' } },
    home: {
      oneOf: [tagged('house'), tagged('boat')],
      discriminator: { propertyName: 'type', mapping: { house: '#/a', boat: '#/b' } },
    },
  },
};

test('a schema offers the branches of everything within it, once, also if it contains itself', () => {
  expect(branchesOf(document, owner, 'Owner').sort()).toEqual([
    'Owner.home.type=boat',
    'Owner.home.type=house',
    'Pet.type=cat',
    'Pet.type=litter',
  ]);
});

test('a value takes the branches that its tags name', () => {
  const taken = (value: unknown) => branchesIn(document, owner, { value, name: 'Owner' }).sort();
  expect(taken({ pets: [{ type: 'cat' }] })).toEqual(['Pet.type=cat']);
  expect(taken({ pets: [{ type: 'litter', pets: [{ type: 'cat' }] }], home: { type: 'boat' } })).toEqual([
    'Owner.home.type=boat',
    'Pet.type=cat',
    'Pet.type=litter',
  ]);
  expect(taken({ pets: [{ type: 'dog' }, null, 'cat'], home: [] })).toEqual([]);
  expect(taken('nothing')).toEqual([]);
});

test('every example of the contract takes only branches that are offered', () => {
  const contract = readDocument();
  let examples = 0;
  for (const item of Object.values(contract.paths)) {
    for (const { operationId, requestBody } of Object.values(item)) {
      const { content } = (requestBody ?? {}) as {
        content?: Record<string, { schema: Schema; examples?: Record<string, { value: unknown }> }>;
      };
      const media = content?.['application/json'];
      for (const { value } of Object.values(media?.examples ?? {})) {
        const offered = new Set(branchesOf(contract, media!.schema, operationId));
        const taken = branchesIn(contract, media!.schema, { value, name: operationId });
        expect(taken.filter((branch) => !offered.has(branch))).toEqual([]);
        examples += taken.length;
      }
    }
  }
  expect(examples).toBeGreaterThan(100);
});
