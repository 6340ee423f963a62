import { encodeFunctionData, parseAbi, toBytes } from 'viem';
import { expect, test } from 'vitest';
import type { ActionUnit } from '../../../src/engine/policy/action.ts';
import { exceedsComparisonLimit, MAX_COMPARISONS } from '../../../src/engine/policy/comparison-limit.ts';
import { compilePolicy, type RuleInput } from '../../../src/engine/policy/compile.ts';
import type { ConditionInput } from '../../../src/engine/policy/condition-source.ts';
import { containsText } from '../../../src/engine/policy/operators.ts';

const rule = (method: string, condition: ConditionInput, count: number): RuleInput => ({
  id: 'rule',
  name: 'rule',
  method,
  action: 'ALLOW',
  conditions: Array.from({ length: count }, () => condition),
});
const judged = (
  chain: string,
  rules: readonly RuleInput[],
  method: string,
  units: readonly Partial<ActionUnit>[],
) =>
  exceedsComparisonLimit(
    compilePolicy({ id: 'policy', chain_type: chain, rules }),
    { method, units: units.map((unit) => ({ label: 'unit', ...unit })) },
    0,
  );
const times = (count: number, unit: Partial<ActionUnit>) => Array.from({ length: count }, () => unit);

const pay = parseAbi(['function pay(uint256[] amounts)']);
const value: ConditionInput = {
  field_source: 'ethereum_transaction',
  field: 'value',
  operator: 'eq',
  value: '1',
};
const call = { ethereumCall: { to: undefined, value: 1n, chainId: 1n, data: new Uint8Array() } };

test('conditions times units, for the rules that apply', () => {
  const conditions = 250;
  const own = [rule('eth_signTransaction', value, conditions)];
  const most = MAX_COMPARISONS / conditions;
  expect(judged('ethereum', own, 'eth_signTransaction', times(most, call))).toBe(false);
  expect(judged('ethereum', own, 'eth_signTransaction', times(most + 1, call))).toBe(true);
  expect(judged('ethereum', own, 'personal_sign', times(most + 1, call))).toBe(false);
  const any = [rule('*', value, conditions)];
  expect(judged('ethereum', any, 'personal_sign', times(most + 1, call))).toBe(true);
});

test('times the values that a condition reads, if there can be many', () => {
  const names: ConditionInput = {
    field_source: 'sui_transaction_command',
    field: 'commandName',
    operator: 'eq',
    value: 'SplitCoins',
  };
  const commands = (count: number) => [
    { suiCommands: Array.from({ length: count }, () => ({ name: 'SplitCoins' }) as const) },
  ];
  const sui = (conditions: number, count: number) =>
    judged('sui', [rule('signTransactionBytes', names, conditions)], 'signTransactionBytes', commands(count));
  expect(sui(50, MAX_COMPARISONS / 50)).toBe(false);
  expect(sui(50, MAX_COMPARISONS / 50 + 1)).toBe(true);

  const types = { Votes: [{ name: 'votes', type: 'uint256[]' }] };
  const votes: ConditionInput = {
    field_source: 'ethereum_typed_data_message',
    field: 'votes',
    operator: 'eq',
    value: '1',
    typed_data: { types, primary_type: 'Votes' },
  };
  const typed = (count: number) =>
    judged('ethereum', [rule('eth_signTypedData_v4', votes, 50)], 'eth_signTypedData_v4', [
      {
        typedData: {
          domain: {},
          types,
          primaryType: 'Votes',
          message: { votes: Array.from({ length: count }, () => 1) },
        },
      },
    ]);
  expect(typed(5000)).toBe(false);
  expect(typed(5001)).toBe(true);
});

test('elements of calldata; a unit without values counts its conditions once', () => {
  const data = (count: number) =>
    toBytes(encodeFunctionData({ abi: pay, args: [Array.from({ length: count }, () => 1n)] }));
  const amounts = (field_source: string): ConditionInput => ({
    field_source,
    field: 'pay.amounts',
    operator: 'eq',
    value: '1',
    abi: pay,
  });
  const ethereum = [rule('eth_signTransaction', amounts('ethereum_calldata'), 50)];
  const tron = [rule('tron_signTransaction', amounts('tron_trigger_smart_contract_data'), 50)];
  for (const [count, isTooMuch] of [
    [5000, false],
    [5001, true],
  ] as const) {
    const ethereumCall = { to: undefined, value: 0n, chainId: 1n, data: data(count) };
    expect(judged('ethereum', ethereum, 'eth_signTransaction', [{ ethereumCall }])).toBe(isTooMuch);
    const tronContract = { type: 'TriggerSmartContract', fields: {}, data: data(count) };
    expect(judged('tron', tron, 'tron_signTransaction', [{ tronContract }])).toBe(isTooMuch);
  }
  const unread = { ethereumCall: { to: undefined, value: 0n, chainId: 1n, data: data(5001).subarray(1) } };
  expect(judged('ethereum', ethereum, 'eth_signTransaction', times(5000, unread))).toBe(false);
});

test('elements of many short calls', () => {
  const amounts: ConditionInput = {
    field_source: 'ethereum_calldata',
    field: 'pay.amounts',
    operator: 'eq',
    value: '1',
    abi: pay,
  };
  const data = toBytes(encodeFunctionData({ abi: pay, args: [Array.from({ length: 20 }, () => 1n)] }));
  const unit = { ethereumCall: { to: undefined, value: 0n, chainId: 1n, data } };
  const rules = [rule('eth_signTransaction', amounts, 50)];
  expect(judged('ethereum', rules, 'eth_signTransaction', times(250, unit))).toBe(false);
  expect(judged('ethereum', rules, 'eth_signTransaction', times(251, unit))).toBe(true);
});

test('units with few values count once, however many they are', () => {
  const amounts: ConditionInput = {
    field_source: 'ethereum_calldata',
    field: 'pay.amounts',
    operator: 'eq',
    value: '1',
    abi: pay,
  };
  const calls = (count: number) => {
    const data = toBytes(encodeFunctionData({ abi: pay, args: [Array.from({ length: count }, () => 1n)] }));
    return times(400, { ethereumCall: { to: undefined, value: 0n, chainId: 1n, data } });
  };
  const ethereum = [rule('eth_signTransaction', amounts, 50)];
  // 484 and 516 bytes: a call has up to 512 bytes, or counts by its values.
  expect(judged('ethereum', ethereum, 'eth_signTransaction', calls(13))).toBe(false);
  expect(judged('ethereum', ethereum, 'eth_signTransaction', calls(14))).toBe(true);

  const names: ConditionInput = {
    field_source: 'sui_transaction_command',
    field: 'commandName',
    operator: 'eq',
    value: 'SplitCoins',
  };
  const sui = [rule('signTransactionBytes', names, 50)];
  const transactions = (commands: number) =>
    times(100, { suiCommands: Array.from({ length: commands }, () => ({ name: 'SplitCoins' }) as const) });
  expect(judged('sui', sui, 'signTransactionBytes', transactions(64))).toBe(false);
  expect(judged('sui', sui, 'signTransactionBytes', transactions(65))).toBe(true);
});

test('conditions on totals and on the time count once', () => {
  const compared = { operator: 'lt', value: '1' } as const;
  const total: ConditionInput = { field_source: 'reference', field: 'aggregation.total', ...compared };
  const time: ConditionInput = { field_source: 'system', field: 'current_unix_timestamp', ...compared };
  const rules = [rule('eth_signTransaction', total, 25), rule('eth_signTransaction', time, 25)];
  const data = new Uint8Array(600);
  const unit = { ethereumCall: { to: undefined, value: 0n, chainId: 1n, data } };
  expect(judged('ethereum', rules, 'eth_signTransaction', times(5000, unit))).toBe(false);
  expect(judged('ethereum', rules, 'eth_signTransaction', times(5001, unit))).toBe(true);
});

test('calldata is read once for any number of ABIs, and only up to the limit', () => {
  class CountedBytes extends Uint8Array {
    reads = { selector: 0, arguments: 0 };

    override subarray(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
      this.reads[end === undefined ? 'arguments' : 'selector'] += 1;
      return new Uint8Array(this).subarray(begin, end);
    }
  }
  const amounts = (name: string): ConditionInput => ({
    field_source: 'ethereum_calldata',
    field: `pay.${name}`,
    operator: 'eq',
    value: '1',
    abi: parseAbi([`function pay(uint256[] ${name})`] as readonly string[]),
  });
  const rules = Array.from({ length: 100 }, (_, index) =>
    rule('eth_signTransaction', amounts(`amounts${index}`), 1),
  );
  const data = new CountedBytes(
    toBytes(encodeFunctionData({ abi: pay, args: [Array.from({ length: 5000 }, () => 1n)] })),
  );
  const ethereumCall = { to: undefined, value: 0n, chainId: 1n, data };
  expect(judged('ethereum', rules, 'eth_signTransaction', [{ ethereumCall }])).toBe(true);
  // The limit is exceeded after 50 of 100 conditions with 5,000 values each.
  expect(data.reads).toEqual({ selector: 50, arguments: 1 });
});

test('a search in a text counts by its length', () => {
  const content = (operator: ConditionInput['operator'], text: string): ConditionInput => ({
    ...{ field_source: 'message', field: 'content', operator, value: text },
  });
  const message = (bytes: number) => [{ messageBytes: new Uint8Array(bytes).fill(0x61) }];
  const search = (condition: ConditionInput, count: number, bytes: number) =>
    judged('ethereum', [rule('personal_sign', condition, count)], 'personal_sign', message(bytes));
  for (const condition of [content('contains', 'please'), content('in_condition_set', 'p'.repeat(24))]) {
    expect(search(condition, 5_000, 300)).toBe(false);
    expect(search(condition, 10, 150_000)).toBe(false);
    expect(search(condition, 5_000, 150_000)).toBe(true);
  }
  expect(search(content('starts_with', 'please'), 5_000, 150_000)).toBe(false);
});

test('long texts are found where `String.includes` finds them', () => {
  let seed = 1;
  const draw = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const letters = (count: number): string => Array.from({ length: count }, () => 'ab'[draw(2)]).join('');
  let found = 0;
  for (let round = 0; round < 400; round += 1) {
    const unit = letters(1 + draw(6));
    const text = unit.repeat(200) + letters(draw(40)) + unit.repeat(200);
    const start = draw(text.length - 260);
    const cut = text.slice(start, start + 251 + draw(200));
    const at = draw(cut.length);
    const part = draw(2) === 0 ? cut : `${cut.slice(0, at)}${'ab'[draw(2)]}${cut.slice(at + 1)}`;
    if (part.length <= 250) continue;
    expect(containsText(text, part), `${part} in ${text}`).toBe(text.includes(part));
    found += Number(text.includes(part));
  }
  expect(found).toBeGreaterThan(100);
});
