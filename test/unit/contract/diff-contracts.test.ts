import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ContractDocument } from '../../../src/contract/contract-document.ts';
import { diffContracts } from '../../../src/contract/diff/diff-contracts.ts';
import { diffMarkdown, diffReport, diffText } from '../../../src/contract/diff/diff-report.ts';
import { junitOf } from '../../../src/reports/junit.ts';
import { readDocument } from '../../ledger/documented.ts';

const error = (...codes: string[]) => ({
  description: 'Refused.',
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/Error' },
      examples: Object.fromEntries(codes.map((code) => [code, { value: { error: 'no', code } }])),
    },
  },
});

/** A shop with what our contract uses of OpenAPI. */
const shop = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1.0.0' },
  security: [{ basic: [] }],
  paths: {
    '/orders/{order_id}': {
      put: {
        operationId: 'updateOrder',
        summary: 'Change an order',
        parameters: [
          { name: 'order_id', in: 'path', required: true, schema: { type: 'string', maxLength: 24 } },
          {
            name: 'expand',
            in: 'query',
            required: false,
            schema: { type: 'string', enum: ['items', 'payment'] },
          },
        ],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } },
        },
        responses: {
          200: {
            description: 'The order.',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } },
          },
          400: error('invalid_data', 'out_of_stock'),
        },
      },
      get: { operationId: 'getOrder', responses: { 204: { description: 'Nothing.' } } },
    },
  },
  webhooks: {
    'order.paid': {
      post: {
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } } },
        responses: { 200: { description: 'Received.' } },
      },
    },
    'order.sent': { post: { responses: { 200: { description: 'Received.' } } } },
  },
  components: {
    schemas: {
      Error: {
        type: 'object',
        required: ['error'],
        additionalProperties: false,
        properties: { error: { type: 'string' }, code: { type: 'string', pattern: '^[a-z_]+$' } },
      },
      Order: {
        type: 'object',
        description: 'What a customer ordered.',
        required: ['amount', 'payment'],
        additionalProperties: false,
        properties: {
          amount: { type: 'integer', minimum: 1, maximum: 100 },
          status: { type: ['string', 'null'], enum: ['open', 'paid', null] },
          payment: { $ref: '#/components/schemas/Payment' },
          parts: { type: 'array', maxItems: 9, items: { $ref: '#/components/schemas/Order' } },
          labels: { type: 'object', additionalProperties: { type: 'string', format: 'uuid' } },
          sent_at: { type: 'integer', format: 'int64', 'x-format': 'unix-ms' },
        },
      },
      Payment: {
        oneOf: [{ $ref: '#/components/schemas/Card' }, { $ref: '#/components/schemas/Transfer' }],
        discriminator: {
          propertyName: 'type',
          mapping: { card: '#/components/schemas/Card', transfer: '#/components/schemas/Transfer' },
        },
      },
      Card: { type: 'object', required: ['type'], properties: { type: { const: 'card' } } },
      Transfer: {
        type: 'object',
        required: ['type'],
        properties: {
          type: { const: 'transfer' },
          reference: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        },
      },
    },
  },
};

type Shop = typeof shop;

// biome-ignore lint/suspicious/noExplicitAny: mutations write what the types of the shop do not have.
type Mutation = (mutated: any) => void;

function changesBy(mutate: Mutation) {
  const mutated = structuredClone(shop);
  mutate(mutated);
  return diffContracts(contract(shop), contract(mutated));
}

const contract = (document: Shop): ContractDocument => document as unknown as ContractDocument;
const put = (mutated: Shop) => mutated.paths['/orders/{order_id}'].put;

const cases: [what: string, mutate: Mutation, expected: string[]][] = [
  [
    'a removed operation',
    (s) => delete s.paths['/orders/{order_id}'].get,
    ['breaking operation-removed getOrder'],
  ],
  [
    'a new operation',
    (s) => (s.paths['/orders'] = { get: { operationId: 'listOrders', responses: {} } }),
    ['compatible operation-added listOrders'],
  ],
  ['a renamed operation', (s) => (put(s).operationId = 'putOrder'), ['breaking operation-renamed putOrder']],
  [
    'another name of a path parameter, which no client sends',
    (s) => {
      s.paths['/orders/{id}'] = s.paths['/orders/{order_id}'];
      delete s.paths['/orders/{order_id}'];
      s.paths['/orders/{id}'].put.parameters[0].name = 'id';
    },
    [],
  ],
  [
    'other credentials',
    (s) => (s.paths['/orders/{order_id}'].put.security = []),
    ['breaking security-changed updateOrder'],
  ],
  [
    'a removed parameter',
    (s) => put(s).parameters.pop(),
    ['breaking parameter-removed updateOrder query expand'],
  ],
  [
    'a parameter that is required now',
    (s) => (put(s).parameters[1]!.required = true),
    ['breaking required-changed updateOrder query expand'],
  ],
  [
    'a value that a request may not have any more',
    (s) => put(s).parameters[1]!.schema.enum!.pop(),
    ['breaking values-changed updateOrder query expand (request)'],
  ],
  [
    'a lower limit, which matters to those who write',
    (s) => (s.components.schemas.Order.properties.amount.maximum = 10),
    ['breaking limit-changed Order.amount (request)', 'compatible limit-changed Order.amount (response)'],
  ],
  [
    'a new value, which matters to those who read',
    (s) => s.components.schemas.Order.properties.status.enum.push('sent'),
    ['breaking values-changed Order.status (response)', 'compatible values-changed Order.status (request)'],
  ],
  [
    'a removed property',
    (s) => delete s.components.schemas.Order.properties.labels,
    ['breaking property-removed Order.labels (request)', 'breaking property-removed Order.labels (response)'],
  ],
  [
    'a new property that requests must have',
    (s) => {
      s.components.schemas.Order.properties.currency = { type: 'string' };
      s.components.schemas.Order.required.push('currency');
    },
    [
      'breaking property-added Order.currency (request)',
      'compatible property-added Order.currency (response)',
    ],
  ],
  [
    'a property that responses may leave out',
    (s) => s.components.schemas.Order.required.shift(),
    [
      'breaking required-changed Order.amount (response)',
      'compatible required-changed Order.amount (request)',
    ],
  ],
  [
    'another unit of a time',
    (s) => (s.components.schemas.Order.properties.sent_at['x-format'] = 'unix-seconds'),
    ['breaking limit-changed Order.sent_at (request)', 'breaking limit-changed Order.sent_at (response)'],
  ],
  [
    'nothing in a format that moved to where tools ignore it',
    (s) => {
      delete s.components.schemas.Order.properties.sent_at['x-format'];
      s.components.schemas.Order.properties.sent_at.format = 'unix-ms';
    },
    [],
  ],
  [
    'another type',
    (s) => (s.components.schemas.Order.properties.amount.type = ['integer', 'null']),
    ['breaking type-changed Order.amount (response)', 'compatible type-changed Order.amount (request)'],
  ],
  [
    'a removed branch',
    (s) => {
      s.components.schemas.Payment.oneOf.pop();
      delete s.components.schemas.Payment.discriminator.mapping.transfer;
    },
    ['breaking branch-removed Payment (request)', 'breaking branch-removed Payment (response)'],
  ],
  [
    'a new branch',
    (s) => {
      s.components.schemas.Payment.oneOf.push({ type: 'object' });
    },
    ['breaking branch-added Payment (response)', 'compatible branch-added Payment (request)'],
  ],
  [
    'a removed error code',
    (s) => delete put(s).responses[400].content['application/json'].examples.out_of_stock,
    ['breaking error-code-removed updateOrder 400', 'text text-changed updateOrder 400'],
  ],
  [
    'a new error code',
    (s) => (put(s).responses[400] = error('invalid_data', 'out_of_stock', 'too_late')),
    ['compatible error-code-added updateOrder 400', 'text text-changed updateOrder 400'],
  ],
  [
    'a removed status',
    (s) => delete (put(s).responses as object as Record<string, unknown>)['400'],
    ['breaking status-removed updateOrder 400'],
  ],
  ['a removed event', (s) => delete s.webhooks['order.sent'], ['breaking event-removed event order.sent']],
  ['a new text', (s) => (put(s).summary = 'Update an order'), ['text text-changed updateOrder']],
];

describe('a comparison finds', () => {
  test.each(cases)('%s', (_what, mutate, expected) => {
    const found = changesBy(mutate).map(({ severity, rule, place }) => `${severity} ${rule} ${place}`);
    expect(found.sort()).toEqual(expected);
  });

  test('nothing between a document and itself', () => {
    expect(changesBy(() => undefined)).toEqual([]);
    expect(diffContracts(readDocument(), readDocument())).toEqual([]);
  });
});

/** The paths of everything in a document that a mutation can delete or replace. */
function pathsIn(node: unknown, path: readonly string[] = []): string[][] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([name, inner]) => {
    const own = [...path, name];
    return [own, ...pathsIn(inner, own)];
  });
}

function mutatedAt(document: object, path: readonly string[], mutation: 'delete' | 'replace'): object {
  const mutated = structuredClone(document);
  const parent = path
    .slice(0, -1)
    .reduce<Record<string, unknown>>((node, name) => node[name] as never, mutated as never);
  const name = path.at(-1)!;
  if (mutation === 'replace') parent[name] = typeof parent[name] === 'string' ? `${parent[name]}x` : 'other';
  else if (Array.isArray(parent)) parent.splice(Number(name), 1);
  else delete parent[name];
  return mutated;
}

const isIgnored = ([first, second]: readonly string[]): boolean => first === 'openapi' || second === 'basic';
const isReference = (path: readonly string[]): boolean => path.at(-1) === '$ref' || path.includes('mapping');

test('every deletion in a document is found', () => {
  const missed = pathsIn(shop)
    .filter((path) => !isIgnored(path))
    .filter((path) => {
      const mutated = mutatedAt(shop, path, 'delete') as Shop;
      return (
        diffContracts(contract(shop), contract({ ...mutated, paths: mutated.paths ?? {} } as Shop)).length ===
        0
      );
    });
  // What no client sends, and a default.
  expect(missed.map((path) => path.slice(3).join('/'))).toEqual([
    'parameters/0/name',
    'parameters/1/required',
  ]);
});

test('every other text or value in a document is found', () => {
  const leaves = pathsIn(shop).filter((path) => {
    const value = path.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], shop);
    return typeof value !== 'object' && !isIgnored(path) && !isReference(path);
  });
  const missed = leaves.filter((path) => {
    const mutated = mutatedAt(shop, path, 'replace') as Shop;
    return diffContracts(contract(shop), contract(mutated)).length === 0;
  });
  // The name of a parameter in the path is nothing that a client sends.
  expect(missed.map((path) => path.join('/'))).toEqual(['paths//orders/{order_id}/put/parameters/0/name']);
  expect(leaves.length).toBeGreaterThan(50);
});

test('deletions at random places of our own contract are found', () => {
  const document = readDocument();
  const valueAt = (path: readonly string[]): unknown =>
    path.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document);
  // Deleting a default changes nothing, and neither does the name of a parameter in a path.
  const isDefault = (path: readonly string[]): boolean =>
    ['name', 'security'].includes(path.at(-1)!) ||
    (path.at(-1) === 'required' && valueAt(path) === false) ||
    (path.at(-1) === 'additionalProperties' && valueAt(path) === true);
  const paths = pathsIn(document).filter(
    (path) =>
      path[0] !== 'components' && path[0] !== 'openapi' && !path.includes('value') && !isDefault(path),
  );
  const runs = process.env.TEST_LONG === '1' ? 500 : 8;
  fc.assert(
    fc.property(fc.constantFrom(...paths), (path) => {
      const mutated = mutatedAt(document, path, 'delete') as ContractDocument;
      return diffContracts(document, { ...mutated, paths: mutated.paths ?? {} }).length > 0;
    }),
    { numRuns: runs, ...(runs === 8 ? { seed: 2026 } : {}) },
  );
});

test('reports say what breaks', () => {
  const changes = changesBy((s) => {
    delete s.webhooks['order.sent'];
    put(s).summary = 'Update an order';
  });
  expect(diffText(changes)).toBe(
    [
      'breaking    event-removed       event order.sent: was removed',
      'text        text-changed        updateOrder: summary changed',
      '',
      '1 breaking, 0 compatible, 1 text',
    ].join('\n'),
  );
  expect(diffMarkdown(changes)).toContain('### Breaking changes\n\n- **event order.sent**: was removed\n');
  const junit = junitOf(diffReport(changes, { file: 'new.json', version: '1' }));
  expect(junit).toContain('tests="2" failures="1" skipped="1"');
  expect(diffMarkdown([])).toBe('The contract is unchanged.\n');
  expect(junitOf(diffReport([], { file: 'new.json', version: '1' }))).toContain('tests="1" failures="0"');
});
