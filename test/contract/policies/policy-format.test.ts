import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messagePolicy, messageRule, type RuleInput, unknownId } from './rules.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** A rule for transactions with one condition. */
const transactions = (condition: object, method = 'eth_signTransaction') =>
  ({ name: 'a rule', method, action: 'ALLOW', conditions: [condition] }) as unknown as RuleInput;
const transfers = (field: string, given: string | string[]) =>
  transactions(
    {
      field_source: 'action_request_body',
      field,
      operator: Array.isArray(given) ? 'in' : 'eq',
      value: given,
    },
    'transfer',
  );
const value = (operator: string, given: unknown) => ({
  field_source: 'ethereum_transaction',
  field: 'value',
  operator,
  value: given,
});
const transferAbi = (type: string) => [
  { type: 'function', name: 'transfer', inputs: [{ name: 'amount', type }], outputs: [] },
];
const calldata = (abi: unknown, field = 'transfer.amount') => ({
  field_source: 'ethereum_calldata',
  field,
  operator: 'eq',
  value: '1',
  abi,
});

const malformed = (pointer: string, message: string) => ({
  status: 400,
  body: {
    error: `${pointer}: ${message}`,
    code: 'invalid_policy_format',
    data: { issues: [{ in: 'body', pointer, message }] },
  },
});

const meaningless: readonly [what: string, rule: RuleInput, pointer: string, message: string][] = [
  [
    'an invalid number',
    transactions(value('lte', 'much')),
    '/conditions/0/value',
    'expected an integer in decimal or 0x hex, got `much`',
  ],
  [
    'an operator for text',
    transactions(value('contains', '1')),
    '/conditions/0/operator',
    '`contains` does not apply to the field `value`; use one of eq, neq, in, in_condition_set, gt, gte, lt, lte',
  ],
  [
    'a list for one',
    transactions(value('lte', ['1'])),
    '/conditions/0/value',
    'expected a string for the operator `lte`',
  ],
  [
    'an invalid address',
    transactions({ ...value('eq', 'alice.eth'), field: 'to' }),
    '/conditions/0/value',
    'expected an address of 0x and 40 hex digits, got `alice.eth`',
  ],
  [
    'an unknown type',
    transactions(calldata(transferAbi('uint257'))),
    '/conditions/0/abi/0',
    'not a valid function: unknown type `uint257`',
  ],
  [
    'an argument that the ABI does not have',
    transactions(calldata(transferAbi('uint256'), 'transfer.to')),
    '/conditions/0/field',
    '`transfer.to` is not a field of `ethereum_calldata`',
  ],
  [
    'a source for another method',
    transactions(value('lte', '1'), 'personal_sign'),
    '/conditions/0/field_source',
    '`ethereum_transaction` does not apply to the method `personal_sign`',
  ],
  [
    'a total that is not looked up in sets',
    transactions({
      field_source: 'reference',
      field: 'aggregation.a',
      operator: 'in_condition_set',
      value: unknownId,
    }),
    '/conditions/0/operator',
    '`in_condition_set` does not apply to the field `aggregation.a`; use one of eq, neq, in, gt, gte, lt, lte',
  ],
  [
    'a condition set that is not there',
    transactions(value('in_condition_set', unknownId)),
    '/conditions/0/value',
    `no condition set \`${unknownId}\``,
  ],
  [
    'another letter case of an asset',
    { ...transfers('source.asset', 'USDC'), action: 'DENY' },
    '/conditions/0/value',
    'expected `usdc`, got `USDC`',
  ],
  [
    'another letter case of a chain in a list',
    { ...transfers('destination.chain', ['base', 'Base']), action: 'DENY' },
    '/conditions/0/value/1',
    'expected `base`, got `Base`',
  ],
  [
    'an aggregation that is not there',
    transactions({
      field_source: 'reference',
      field: `aggregation.${unknownId}`,
      operator: 'lte',
      value: '1',
    }),
    '/conditions/0/field',
    `no aggregation \`${unknownId}\``,
  ],
];

describe.each(meaningless)('%s', (_, rule, pointer, message) => {
  test('is refused wherever a rule is written, and changes nothing', async () => {
    const { body: made } = await call(sandbox, 'createPolicy', { body: messagePolicy(['one']) });
    const path = { policy_id: made.id };
    const rules = [messageRule('good'), rule];

    const body = { ...messagePolicy([]), rules };
    expect(await refusal(sandbox, 'createPolicy', { body })).toEqual(
      malformed(`/rules/1${pointer}`, message),
    );
    const change = { path, body: { name: 'new', rules } };
    expect(await refusal(sandbox, 'updatePolicy', change)).toEqual(malformed(`/rules/1${pointer}`, message));
    expect(await refusal(sandbox, 'createPolicyRule', { path, body: rule })).toEqual(
      malformed(pointer, message),
    );
    const rulePath = { ...path, rule_id: made.rules[0]!.id };
    expect(await refusal(sandbox, 'updatePolicyRule', { path: rulePath, body: rule })).toEqual(
      malformed(pointer, message),
    );

    expect((await call(sandbox, 'getPolicy', { path })).body).toEqual(made);
  });
});

test('a method of another chain', async () => {
  const body = { ...messagePolicy([]), chain_type: 'xrpl', rules: [{ ...messageRule('a'), method: '*' }] };
  expect(await refusal(sandbox, 'createPolicy', { body })).toEqual(
    malformed(
      '/rules/0/method',
      '`*` is not a rule method of `xrpl`; use one of xrpl_signTransaction, exportPrivateKey, exportSeedPhrase',
    ),
  );
  const { body: made } = await call(sandbox, 'createPolicy', {
    body: { ...messagePolicy([]), chain_type: 'sui' },
  });
  const answer = await refusal(sandbox, 'createPolicyRule', {
    path: { policy_id: made.id },
    body: messageRule('a'),
  });
  expect([answer.status, answer.body.code, answer.body.error]).toEqual([
    400,
    'invalid_policy_format',
    '/method: `personal_sign` is not a rule method of `sui`; use one of signTransactionBytes, signRawMessageBytes, exportPrivateKey, exportSeedPhrase, *',
  ]);
});

test('sources, fields and sizes that are not in the contract are refused by validation', async () => {
  const wrong = [
    transactions({ ...value('eq', '1'), field_source: 'moon' }),
    transactions({ ...value('eq', '1'), field: 'data' }),
    transactions({ ...value('eq', '1'), abi: transferAbi('uint256') }),
    transactions(value('like', '1')),
    transactions(value('eq', 1)),
    transactions(value('in', [])),
    transactions(
      value(
        'in',
        Array.from({ length: 101 }, () => '1'),
      ),
    ),
    transactions(calldata([])),
    transactions(calldata(Array.from({ length: 201 }, () => transferAbi('uint256')[0]))),
    transactions(calldata(undefined)),
  ];
  for (const rule of wrong) {
    const answer = await refusal(sandbox, 'createPolicy', { body: { ...messagePolicy([]), rules: [rule] } });
    expect([answer.status, answer.body.code], JSON.stringify(rule).slice(0, 200)).toEqual([
      400,
      'invalid_data',
    ]);
  }
});

test('a set or aggregation of another app does not exist', async () => {
  const other = await asOtherApp(sandbox);
  const set = await call(sandbox, 'createConditionSet', { body: { name: 'mine' } });
  const total = await call(sandbox, 'createAggregation', {
    body: {
      name: 'mine',
      method: 'eth_signTransaction',
      metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
      window: { type: 'rolling', seconds: 3600 },
    },
  });
  const rules = [
    transactions(value('in_condition_set', set.body.id)),
    transactions({
      field_source: 'reference',
      field: `aggregation.${total.body.id}`,
      operator: 'lte',
      value: '1',
    }),
  ];
  const { body: made } = await call(sandbox, 'createPolicy', { body: { ...messagePolicy([]), rules } });
  expect(made.rules).toMatchObject(rules);
  for (const rule of rules) {
    const answer = await refusal(other, 'createPolicy', { body: { ...messagePolicy([]), rules: [rule] } });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_policy_format']);
  }
});

test('accepted policies are returned unchanged', async () => {
  const conditions = [
    { ...value('lte', '0x0DE0B6B3A7640000') },
    { ...value('in', ['1', '0x2', '3']) },
    { ...value('eq', '0xD8DA6BF26964AF9D7EED9E03E53415D37AA96045'), field: 'to' },
    { ...calldata([...transferAbi('uint256'), { type: 'event', name: 'Paid', inputs: [] }]) },
  ];
  const rule = { ...transactions({}), conditions } as unknown as RuleInput;
  const { body: made } = await call(sandbox, 'createPolicy', {
    body: { ...messagePolicy([]), rules: [rule] },
  });
  expect(made.rules[0]?.conditions).toEqual(conditions);
});
