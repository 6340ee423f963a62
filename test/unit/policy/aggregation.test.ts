import { encodeFunctionData, parseAbi, toBytes } from 'viem';
import { describe, expect, test } from 'vitest';
import type { ActionUnit, PolicyAction, PolicyFacts } from '../../../src/engine/policy/action.ts';
import { type AggregationDefinition, compileAggregation } from '../../../src/engine/policy/aggregation.ts';
import { PolicyFormatError } from '../../../src/engine/policy/condition-source.ts';

const [alice, bob] = [
  '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045',
  '0x000000000000000000000000000000000000dEaD',
];
const abi = parseAbi([
  'function transfer(address to, uint256 amount)',
  'function payMany(address[] targets, int256[] amounts)',
]);
const facts: PolicyFacts = { nowMs: 0, inConditionSet: () => undefined, aggregation: () => undefined };

const ether: AggregationDefinition = {
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value' },
};
const onCalldata = (field: string) => ({ field_source: 'ethereum_calldata', field, abi });
const tokens: AggregationDefinition = { ...ether, metric: onCalldata('transfer.amount') };

const call = (part: Partial<NonNullable<ActionUnit['ethereumCall']>>): ActionUnit => ({
  label: 'call',
  ethereumCall: { to: alice, value: 0n, chainId: 1n, data: new Uint8Array(), ...part },
});
const transfer = (to: string, amount: bigint) =>
  toBytes(encodeFunctionData({ abi, functionName: 'transfer', args: [to as `0x${string}`, amount] }));
const payMany = (amounts: bigint[]) =>
  toBytes(
    encodeFunctionData({
      abi,
      functionName: 'payMany',
      args: [amounts.map(() => bob as `0x${string}`), amounts],
    }),
  );
const added = (
  definition: AggregationDefinition,
  units: readonly ActionUnit[],
  method = 'eth_signTransaction',
) => compileAggregation(definition).contributions({ method, units } as PolicyAction, facts);
const amountsOf = (definition: AggregationDefinition, ...units: ActionUnit[]) =>
  added(definition, units).map(({ amount }) => amount);

describe('the contribution of a request', () => {
  test('the contribution of a request is its metric, of every call', () => {
    expect(added(ether, [call({ value: 5n }), call({ value: 2n ** 255n })])).toEqual([
      { groupKey: '[]', amount: 5n },
      { groupKey: '[]', amount: 2n ** 255n },
    ]);
  });

  test('the contribution of a request is empty for another method', () => {
    expect(added(ether, [call({ value: 5n })], 'eth_signUserOperation')).toEqual([]);
    expect(added({ ...ether, method: 'eth_signUserOperation' }, [call({ value: 5n })])).toEqual([]);
  });

  test('the contribution of a request counts for a chain or a recipient also if the transaction is bound to none', () => {
    const onChain = { field_source: 'ethereum_transaction', field: 'chain_id' };
    const toAlice = { field_source: 'ethereum_transaction', field: 'to' };
    const only = (field: typeof onChain, value: string): AggregationDefinition => ({
      ...ether,
      conditions: [{ ...field, operator: 'eq', value }],
    });
    const anywhere = call({ value: 5n, chainId: undefined });
    const creation = call({ value: 5n, to: undefined });
    expect(amountsOf(only(onChain, '1'), anywhere)).toEqual([5n]);
    expect(amountsOf(only(onChain, '1'), call({ value: 5n, chainId: 2n }))).toEqual([]);
    expect(amountsOf(only(toAlice, alice!), creation)).toEqual([5n]);
    // Another group would have a total of its own.
    expect(amountsOf({ ...ether, group_by: [onChain] }, anywhere)).toEqual([undefined]);
    expect(amountsOf({ ...ether, group_by: [toAlice] }, creation)).toEqual([undefined]);
  });

  test('the contribution of a request is 0 without the field, and unknown if the field is unreadable', () => {
    expect(amountsOf(tokens, call({}))).toEqual([0n]);
    expect(amountsOf(tokens, call({ data: transfer(alice, 7n) }))).toEqual([7n]);
    expect(amountsOf(tokens, call({ data: transfer(alice, 7n).subarray(0, 60) }))).toEqual([undefined]);
    expect(amountsOf(ether, { label: 'bytes', undecodable: 'strange' })).toEqual([undefined]);
    expect(amountsOf(ether, { label: 'message', messageBytes: new Uint8Array() })).toEqual([0n]);
  });

  test('the contribution of a request is the sum of all elements, without negative ones', () => {
    const definition = { ...ether, metric: onCalldata('payMany.amounts') };
    expect(amountsOf(definition, call({ data: payMany([1n, 2n, 3n]) }))).toEqual([6n]);
    expect(amountsOf(definition, call({ data: payMany([10n, -100n, 0n]) }))).toEqual([10n]);
    expect(amountsOf(definition, call({ data: payMany([]) }))).toEqual([0n]);
  });
});

describe('conditions', () => {
  const toBob = { field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: bob } as const;
  const small = {
    field_source: 'ethereum_transaction',
    field: 'value',
    operator: 'lt',
    value: '10',
  } as const;

  test('select the calls that count: all of them must hold', () => {
    const definition = { ...ether, conditions: [toBob, small] };
    const units = [call({ value: 1n }), call({ to: bob, value: 2n }), call({ to: bob, value: 10n })];
    expect(amountsOf(definition, ...units)).toEqual([2n]);
  });

  test('that are unreadable count the call; those on an absent field do not', () => {
    const onTransfer = { ...onCalldata('transfer.to'), operator: 'eq', value: bob } as const;
    const definition = { ...ether, conditions: [onTransfer] };
    const cutOff = transfer(alice, 7n).subarray(0, 60);
    expect(amountsOf(definition, call({ value: 1n, data: cutOff }))).toEqual([1n]);
    expect(amountsOf(definition, call({ value: 1n }))).toEqual([]);
    expect(amountsOf(definition, call({ value: 1n, data: transfer(alice, 7n) }))).toEqual([]);
    expect(amountsOf(definition, call({ value: 1n, data: transfer(bob, 7n) }))).toEqual([1n]);
  });

  test('conditions on several values hold if one matches', () => {
    const big = { ...onCalldata('payMany.amounts'), operator: 'gt', value: '100' } as const;
    const definition = { ...ether, conditions: [big] };
    expect(amountsOf(definition, call({ value: 1n, data: payMany([1n, 101n]) }))).toEqual([1n]);
    expect(amountsOf(definition, call({ value: 1n, data: payMany([1n, 100n]) }))).toEqual([]);
  });
});

describe('groups', () => {
  const definition = {
    ...ether,
    group_by: [{ field_source: 'ethereum_transaction', field: 'to' }, onCalldata('transfer.to')],
  };
  const keyOf = (unit: ActionUnit) => added(definition, [unit])[0]?.groupKey;

  test('groups are distinguished by the values of their fields', () => {
    const keys = [
      call({}),
      call({ to: bob }),
      call({ data: transfer(alice, 1n) }),
      call({ data: transfer(bob, 1n) }),
      call({ to: undefined }),
    ].map(keyOf);
    expect(keys).toEqual([
      `[["${alice.toLowerCase()}"],null]`,
      `[["${bob.toLowerCase()}"],null]`,
      `[["${alice.toLowerCase()}"],["${alice.toLowerCase()}"]]`,
      `[["${alice.toLowerCase()}"],["${bob.toLowerCase()}"]]`,
      '[null,null]',
    ]);
  });

  test('that are unknown make the sum unknown, so a full group cannot be bypassed', () => {
    const bytesBehind = new Uint8Array([...transfer(bob, 1n), 0]);
    const units = [call({ value: 5n, data: bytesBehind }), call({ value: 5n, data: transfer(bob, 1n) })];
    expect(added(definition, units)).toEqual([
      { groupKey: `[["${alice.toLowerCase()}"],null]`, amount: undefined },
      { groupKey: `[["${alice.toLowerCase()}"],["${bob.toLowerCase()}"]]`, amount: 5n },
    ]);
    expect(added(definition, [{ label: 'bytes', undecodable: 'strange' }])).toEqual([
      { groupKey: '[null,null]', amount: undefined },
    ]);
  });

  test('groups are the same for every spelling of an address, and any amount', () => {
    const key = keyOf(call({ data: transfer(alice, 1n) }));
    expect(keyOf(call({ to: alice.toLowerCase(), value: 9n, data: transfer(alice, 2n) }))).toBe(key);
    expect(keyOf(call({ to: `0x${alice.slice(2).toUpperCase()}`, data: transfer(alice, 1n) }))).toBe(key);
  });
});

describe('an invalid definition', () => {
  const refusalOf = (definition: unknown): [pointer: string, message: string] => {
    try {
      compileAggregation(definition as AggregationDefinition);
    } catch (error) {
      if (error instanceof PolicyFormatError) return [error.pointer, error.message];
      throw error;
    }
    throw new Error('it was compiled');
  };
  const metric = { field_source: 'ethereum_transaction', field: 'value' };

  test.each([
    [
      { ...ether, metric: { ...metric, field_source: 'moon' } },
      '/metric/field_source',
      'unknown field source `moon`',
    ],
    [
      { ...ether, metric: { ...metric, field_source: 'toString' } },
      '/metric/field_source',
      'unknown field source `toString`',
    ],
    [
      { ...ether, metric: { field_source: 'reference', field: 'aggregation.a' } },
      '/metric/field_source',
      'an aggregation cannot refer to another aggregation',
    ],
    [
      { ...ether, metric: { field_source: 'message', field: 'byte_length' } },
      '/metric/field_source',
      '`message` does not apply to the method `eth_signTransaction`',
    ],
    [{ ...ether, metric: { ...metric, field: 'to' } }, '/metric/field', 'expected a field that is a number'],
    [
      { ...ether, metric: { ...metric, field: 'gas' } },
      '/metric/field',
      '`gas` is not a field of `ethereum_transaction`',
    ],
    [
      { ...ether, metric: { ...onCalldata('f.a'), abi: [] } },
      '/metric/abi',
      'expected 1 to 200 items, got 0',
    ],
    [
      { ...ether, group_by: [metric, { ...metric, field: 'gas' }] },
      '/group_by/1/field',
      '`gas` is not a field of `ethereum_transaction`',
    ],
    [
      {
        ...ether,
        conditions: [
          { ...metric, operator: 'lt', value: '1' },
          { ...metric, operator: 'lt', value: 'x' },
        ],
      },
      '/conditions/1/value',
      'expected an integer in decimal or 0x hex, got `x`',
    ],
    [
      {
        ...ether,
        conditions: [{ field_source: 'reference', field: 'aggregation.a', operator: 'lt', value: '1' }],
      },
      '/conditions/0/field_source',
      'an aggregation cannot refer to another aggregation',
    ],
    [
      { ...ether, conditions: [{ ...metric, operator: 'in_condition_set', value: 'a'.repeat(24) }] },
      '/conditions/0/operator',
      'an aggregation cannot refer to a condition set',
    ],
  ])('an invalid definition is refused: %#', (definition, pointer, message) => {
    expect(refusalOf(definition)).toEqual([pointer, message]);
  });
});
