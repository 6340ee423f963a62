import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import type { CreateAggregationRequest } from '../../src/generated/schemas.ts';
import { call, refusal } from '../support/call.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { expectOwnersAreAsked, makePair, signedByPair } from './policies/owner-signatures.ts';
import { seededStartMs, unknownId } from './policies/rules.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
// An app has at most ten.
beforeEach(() => sandbox.reset());
afterAll(() => sandbox[Symbol.asyncDispose]());

const cuid2 = expect.stringMatching(/^[a-z][0-9a-z]{23}$/);
const notFound = { status: 404, body: { error: 'Aggregation not found' } };

const daily: CreateAggregationRequest = {
  name: 'Ether sent in a day',
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
  window: { type: 'rolling', seconds: 86_400 },
};
const transferAbi = [
  {
    type: 'function' as const,
    name: 'transfer',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
    outputs: [],
  },
];
const tokens: CreateAggregationRequest = {
  ...daily,
  name: 'Tokens',
  method: 'eth_signUserOperation',
  metric: { field_source: 'ethereum_calldata', field: 'transfer.amount', function: 'sum', abi: transferAbi },
  conditions: [
    {
      field_source: 'ethereum_transaction',
      field: 'to',
      operator: 'eq',
      value: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    },
  ],
  group_by: [
    { field_source: 'ethereum_calldata', field: 'transfer.to', abi: transferAbi },
    { field_source: 'ethereum_transaction', field: 'chain_id' },
  ],
};

test.each([daily, tokens])('$name is created, read and deleted', async (body) => {
  const { body: made } = await call(sandbox, 'createAggregation', { body });
  expect(made).toEqual({ ...body, id: cuid2, owner_id: null, created_at: seededStartMs });
  const path = { aggregation_id: made.id };
  expect((await call(sandbox, 'getAggregation', { path })).body).toEqual(made);
  expect((await call(sandbox, 'deleteAggregation', { path })).body).toEqual({ success: true });
  expect(await refusal(sandbox, 'getAggregation', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'deleteAggregation', { path })).toEqual(notFound);
});

test("an aggregation with an owner is deleted with the owner's signatures", async () => {
  const owner_id = await makePair(sandbox);
  const { body: made } = await call(sandbox, 'createAggregation', { body: { ...daily, owner_id } });
  expect(made).toEqual({ ...daily, id: cuid2, owner_id, created_at: seededStartMs });
  const path = { aggregation_id: made.id };
  await expectOwnersAreAsked(sandbox, { operation: 'deleteAggregation', input: { path } });
  expect((await call(sandbox, 'getAggregation', { path })).body).toEqual(made);

  const quorum = { path: { key_quorum_id: owner_id } };
  const owned = await refusal(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
  expect(owned.status).toBe(400);
  expect(owned.body.error).toContain('the owner of an aggregation');
  await call(sandbox, 'deleteAggregation', { path }, signedByPair);
  await call(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
});

test('an owner may be a key', async () => {
  const owner = { public_key: aliceKey.publicKey };
  const { body } = await call(sandbox, 'createAggregation', { body: { ...daily, owner } });
  expect(body).toEqual({ ...daily, id: cuid2, owner_id: cuid2, created_at: seededStartMs });
});

test('an unknown aggregation, or one of another app, is not found', async () => {
  const { body: made } = await call(sandbox, 'createAggregation', { body: daily });
  const other = await asOtherApp(sandbox);
  for (const [who, aggregation_id] of [
    [sandbox, unknownId],
    [other, made.id],
  ] as const) {
    const path = { aggregation_id };
    expect(await refusal(who, 'getAggregation', { path })).toEqual(notFound);
    expect(await refusal(who, 'deleteAggregation', { path })).toEqual(notFound);
  }
  expect((await call(sandbox, 'getAggregation', { path: { aggregation_id: made.id } })).body).toEqual(made);
});

test('an app can have at most ten aggregations', async () => {
  const other = await asOtherApp(sandbox);
  const make = (who = sandbox) => call(who, 'createAggregation', { body: daily });
  const ten = await Promise.all(Array.from({ length: 10 }, () => make()));
  expect(await refusal(sandbox, 'createAggregation', { body: daily })).toEqual({
    status: 400,
    body: { error: 'an app can have at most 10 aggregations', code: 'invalid_aggregation_format' },
  });
  // Another app can have ten more, and a deletion frees a place.
  await make(other);
  await call(sandbox, 'deleteAggregation', { path: { aggregation_id: ten[3]!.body.id } });
  await make();
});

test('one idempotency key creates one aggregation', async () => {
  const first = await call(sandbox, 'createAggregation', { body: daily }, { idempotencyKey: 'k' });
  const again = await call(sandbox, 'createAggregation', { body: daily }, { idempotencyKey: 'k' });
  expect(again.body).toEqual(first.body);
});

test('values at the limits are accepted', async () => {
  const condition = tokens.conditions![0]!;
  for (const body of [
    { ...daily, name: 'a'.repeat(255), window: { type: 'rolling', seconds: 3600 } },
    { ...daily, name: 'a', window: { type: 'rolling', seconds: 259_200 } },
    { ...daily, conditions: Array.from({ length: 100 }, () => condition) },
    { ...daily, conditions: [], group_by: [] },
  ] as const) {
    const made = await call(sandbox, 'createAggregation', { body: body as CreateAggregationRequest });
    expect(made.body).toMatchObject(body);
  }
});

test('fields that are not in the contract are refused', async () => {
  const condition = tokens.conditions![0]!;
  const group = tokens.group_by![1]!;
  for (const body of [
    { ...daily, name: '' },
    { ...daily, name: 'a'.repeat(256) },
    { ...daily, method: 'personal_sign' },
    { ...daily, metric: { ...daily.metric, function: 'max' } },
    { ...daily, metric: { ...daily.metric, field_source: 'system' } },
    { ...daily, metric: undefined },
    { ...daily, window: { type: 'fixed', seconds: 3600 } },
    { ...daily, window: { type: 'rolling', seconds: 3599 } },
    { ...daily, window: { type: 'rolling', seconds: 259_201 } },
    { ...daily, window: { type: 'rolling', seconds: 3600.5 } },
    { ...daily, window: undefined },
    { ...daily, conditions: Array.from({ length: 101 }, () => condition) },
    { ...daily, group_by: [group, group, group] },
    { ...daily, owner_id: unknownId },
    { ...daily, color: 'red' },
  ]) {
    const answer = await refusal(sandbox, 'createAggregation', { body });
    expect([answer.status, answer.body.code], JSON.stringify(body).slice(0, 300)).toEqual([
      400,
      'invalid_data',
    ]);
  }
});

describe('an aggregation with an invalid definition is refused:', () => {
  const meaningless: readonly [what: string, body: object, pointer: string, message: string][] = [
    [
      'a metric that is no number',
      { ...daily, metric: { ...daily.metric, field: 'to' } },
      '/metric/field',
      'expected a field that is a number',
    ],
    [
      'a metric that is no field',
      { ...daily, metric: { ...daily.metric, field: 'gas' } },
      '/metric/field',
      '`gas` is not a field of `ethereum_transaction`',
    ],
    [
      'a metric without its ABI',
      { ...daily, metric: { ...daily.metric, field_source: 'ethereum_calldata', field: 'transfer.amount' } },
      '/metric/abi',
      'expected 1 to 200 items, got 0',
    ],
    [
      'a bad ABI of a group',
      {
        ...daily,
        group_by: [
          tokens.group_by![1],
          { ...tokens.group_by![0], abi: [{ type: 'function', name: 'f', inputs: [{ type: 'money' }] }] },
        ],
      },
      '/group_by/1/abi/0',
      'not a valid function: unknown type `money`',
    ],
    [
      'an invalid condition',
      { ...tokens, conditions: [{ ...tokens.conditions![0], value: 'alice.eth' }] },
      '/conditions/0/value',
      'expected an address of 0x and 40 hex digits, got `alice.eth`',
    ],
    [
      'a condition on another method',
      {
        ...daily,
        conditions: [
          tokens.conditions![0],
          { field_source: 'message', field: 'content', operator: 'eq', value: 'a' },
        ],
      },
      '/conditions/1/field_source',
      '`message` does not apply to the method `eth_signTransaction`',
    ],
    [
      'a condition on another aggregation',
      {
        ...daily,
        conditions: [{ field_source: 'reference', field: 'aggregation.a', operator: 'eq', value: '1' }],
      },
      '/conditions/0/field_source',
      'an aggregation cannot refer to another aggregation',
    ],
    [
      'a condition on a set, which may be gone',
      {
        ...daily,
        conditions: [{ ...tokens.conditions![0], operator: 'in_condition_set', value: unknownId }],
      },
      '/conditions/0/operator',
      'an aggregation cannot refer to a condition set',
    ],
  ];

  test.each(meaningless)(
    'an aggregation with an invalid definition is refused: %s',
    async (_, body, pointer, message) => {
      expect(await refusal(sandbox, 'createAggregation', { body })).toEqual({
        status: 400,
        body: {
          error: `${pointer}: ${message}`,
          code: 'invalid_aggregation_format',
          data: { issues: [{ in: 'body', pointer, message }] },
        },
      });
    },
  );
});
