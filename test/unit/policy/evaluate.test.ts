import { encodeFunctionData, parseAbi, toBytes } from 'viem';
import { describe, expect, test } from 'vitest';
import type { PolicyAction, PolicyFacts } from '../../../src/engine/policy/action.ts';
import { compilePolicy } from '../../../src/engine/policy/compile.ts';
import { collectLookups, decisionOf, evaluatePolicy } from '../../../src/engine/policy/evaluate.ts';
import { isItem, setCandidateKey } from '../../../src/engine/policy/operators.ts';

const alice = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045';
const friends = 'friends00000000000000000';
const amounts = 'amounts00000000000000000';
const facts: PolicyFacts = { nowMs: 1000, inConditionSet: () => undefined, aggregation: () => undefined };

type Condition = Readonly<Record<string, unknown>>;
const on = (
  field: string,
  operator: string,
  value: unknown,
  field_source = 'ethereum_transaction',
): Condition => ({
  field_source,
  field,
  operator,
  value,
});
const compile = (chain_type: string, rules: readonly object[]) =>
  compilePolicy({ id: 'spending', chain_type, rules: rules as never });
const rule = (id: string, action: string, conditions: readonly Condition[], method = 'wallet_sendCalls') => ({
  id,
  name: `the rule ${id}`,
  method,
  action,
  conditions,
});
const calls = (...values: bigint[]): PolicyAction => ({
  method: 'wallet_sendCalls',
  units: values.map((value, index) => ({
    label: `call ${index}`,
    ethereumCall: { to: alice, value, chainId: 1n, data: new Uint8Array() },
  })),
});

const mixed = compile('ethereum', [
  rule('a', 'ALLOW', [on('value', 'lte', '0x64')]),
  rule('b', 'DENY', [on('to', 'in_condition_set', friends), on('value', 'gt', '50')]),
  rule('c', 'ALLOW', [], 'personal_sign'),
]);

test('the trace contains every unit, rule and condition with the observed values', () => {
  const decision = evaluatePolicy(mixed, calls(100n, 101n), { ...facts, inConditionSet: () => false });
  const traceOf = (value: string, fits: boolean) => [
    {
      rule_id: 'a',
      rule_name: 'the rule a',
      action: 'ALLOW',
      method: 'wallet_sendCalls',
      conditions: [
        {
          ...on('value', 'lte', '0x64'),
          observed: { state: 'present', values: [value] },
          result: fits ? 'true' : 'false',
        },
      ],
      matched: fits,
    },
    {
      rule_id: 'b',
      rule_name: 'the rule b',
      action: 'DENY',
      method: 'wallet_sendCalls',
      conditions: [
        {
          ...on('to', 'in_condition_set', friends),
          observed: { state: 'present', values: [alice.toLowerCase()] },
          result: 'false',
        },
        { ...on('value', 'gt', '50'), observed: { state: 'present', values: [value] }, result: 'true' },
      ],
      matched: false,
    },
  ];
  expect(decision).toEqual({
    allowed: false,
    policy_id: 'spending',
    method: 'wallet_sendCalls',
    units: [
      { unit: 'call 0', rules: traceOf('100', true), outcome: 'allowed', deciding_rule_id: 'a' },
      { unit: 'call 1', rules: traceOf('101', false), outcome: 'no_rule_matched', deciding_rule_id: null },
    ],
  });
});

test('a unit contains the reason of its denial', () => {
  const outcomeOf = (action: PolicyAction, inSet: boolean) =>
    evaluatePolicy(mixed, action, { ...facts, inConditionSet: () => inSet }).units.map(
      ({ outcome, deciding_rule_id }) => [outcome, deciding_rule_id],
    );
  expect(outcomeOf(calls(60n), true)).toEqual([['denied_by_rule', 'b']]);
  expect(outcomeOf(calls(200n), false)).toEqual([['no_rule_matched', null]]);
  const message = { label: 'message', messageBytes: new Uint8Array() };
  expect(outcomeOf({ method: 'signMessage', units: [message] }, false)).toEqual([
    ['no_rule_for_method', null],
  ]);
  expect(outcomeOf({ method: 'personal_sign', units: [message] }, false)).toEqual([['allowed', 'c']]);
});

describe('decisionOf', () => {
  const trace = evaluatePolicy(mixed, calls(40n, 30n), { ...facts, inConditionSet: () => true });

  test('decisionOf derives the same decision', () => {
    expect(trace.allowed).toBe(true);
    expect(decisionOf(trace).allowed).toBe(true);
    expect(decisionOf({ units: [] }).allowed).toBe(false);
  });

  test('decisionOf uses only the results of conditions', () => {
    const reported = trace.units.map((unit) => ({
      ...unit,
      outcome: 'no_rule_matched' as const,
      rules: unit.rules.map((one) => ({ ...one, matched: !one.matched })),
    }));
    expect(decisionOf({ units: reported }).allowed).toBe(true);
    const changed = trace.units.map((unit) => ({
      ...unit,
      rules: unit.rules.map((one) => ({
        ...one,
        conditions: one.conditions.map((condition) => ({ ...condition, result: 'unknown' as const })),
      })),
    }));
    expect(decisionOf({ units: changed }).allowed).toBe(false);
  });
});

describe('collectLookups', () => {
  const nothing = { exact: [], ignoringCase: [], numbers: [] };
  const spelled = (policy: ReturnType<typeof compile>, action: PolicyAction) =>
    Object.fromEntries(
      collectLookups(policy, action, 0).map(({ conditionSetId, candidates }) => [conditionSetId, candidates]),
    );

  test('collectLookups looks up each value of each unit once, in its spellings', () => {
    const policy = compile('ethereum', [
      rule('a', 'ALLOW', [on('to', 'in_condition_set', friends), on('value', 'in_condition_set', amounts)]),
      rule(
        'b',
        'DENY',
        [on('to', 'in_condition_set', friends), on('chain_id', 'in_condition_set', amounts)],
        '*',
      ),
      rule(
        'c',
        'ALLOW',
        [on('value', 'in_condition_set', 'other0000000000000000000')],
        'eth_signTransaction',
      ),
      rule('d', 'ALLOW', [on('value', 'lte', '5')]),
    ]);
    expect(spelled(policy, calls(255n, 255n, 1n))).toEqual({
      [friends]: [{ ...nothing, ignoringCase: [alice.toLowerCase()] }],
      [amounts]: [
        { ...nothing, numbers: ['0255', '0x0ff'] },
        { ...nothing, numbers: ['01', '0x01'] },
      ],
    });
  });

  test('includes a set without values to look up, to detect its deletion', () => {
    const policy = compile('ethereum', [rule('a', 'ALLOW', [on('to', 'in_condition_set', friends)])]);
    const creation = { ...calls(), units: [{ label: 'call' }, { label: 'bytes', undecodable: 'strange' }] };
    expect(spelled(policy, creation)).toEqual({ [friends]: [] });
  });

  test('collectLookups returns the time in seconds', () => {
    const condition = on('current_unix_timestamp', 'in_condition_set', friends, 'system');
    const policy = compile('ethereum', [rule('a', 'ALLOW', [condition])]);
    expect(collectLookups(policy, calls(1n), 1999)).toEqual([
      { conditionSetId: friends, candidates: [{ ...nothing, numbers: ['01', '0x01'] }] },
    ]);
  });

  test('collectLookups finds a value in every notation of its kind, and no other value', () => {
    const abi = parseAbi(['function f(int256 delta, bytes proof, string note, bool done)']);
    const cases: readonly [
      chain: string,
      method: string,
      condition: Condition,
      unit: object,
      contained: readonly string[],
      others: readonly string[],
    ][] = [
      [
        'tron',
        'tron_signTransaction',
        on('TransferContract.to_address', 'in_condition_set', friends, 'tron_transaction'),
        {
          tronContract: {
            type: 'TransferContract',
            fields: { to_address: '41a614f803b6fd780986a42c78ec9c7f77e6ded13c' },
          },
        },
        [
          '41a614f803b6fd780986a42c78ec9c7f77e6ded13c',
          '41A614F803B6FD780986A42C78EC9C7F77E6DED13C',
          '41A614f803b6fd780986a42c78ec9c7f77e6DED13c',
          'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
        ],
        ['tr7nhqjekqxgtci8q8zy4pl8otszgjlj6t', '0xa614f803b6fd780986a42c78ec9c7f77e6ded13c'],
      ],
      [
        'sui',
        'signTransactionBytes',
        on('recipient', 'in_condition_set', friends, 'sui_transfer_objects_command'),
        { suiCommands: [{ name: 'TransferObjects', recipient: '0x0A' }] },
        [`0x${'0'.repeat(63)}a`, '0xa', '0x0A', '0x000a'],
        ['0xa0', 'a', '0xb'],
      ],
      [
        'xrpl',
        'xrpl_signTransaction',
        on('TrustSet.LimitAmount.value', 'in_condition_set', friends, 'xrpl_transaction'),
        { xrplTransaction: { TransactionType: 'TrustSet', LimitAmount: { value: '010.500' } } },
        ['010.500', '10.5', '10.50', '0010.5'],
        ['10', '10.05', '1.5', '105', '10.5.0'],
      ],
      [
        'xrpl',
        'xrpl_signTransaction',
        on('TrustSet.LimitAmount.value', 'in_condition_set', friends, 'xrpl_transaction'),
        { xrplTransaction: { TransactionType: 'TrustSet', LimitAmount: { value: '100' } } },
        ['100', '100.0', '100.00', '0100'],
        ['1', '10', '1000', '100.01', '0x64'],
      ],
      [
        'solana',
        'signTransaction',
        on('programId', 'in_condition_set', friends, 'solana_program_instruction'),
        { solanaInstruction: { programId: '1'.repeat(32), program: 'system', name: undefined, fields: {} } },
        ['1'.repeat(32)],
        ['1'.repeat(31), `0${'1'.repeat(32)}`],
      ],
      [
        'ethereum',
        'eth_signTransaction',
        { ...on('f.delta', 'in_condition_set', friends, 'ethereum_calldata'), abi },
        {
          ethereumCall: {
            to: undefined,
            value: 0n,
            chainId: 1n,
            data: toBytes(encodeFunctionData({ abi, args: [-5n, '0xab', '', true] })),
          },
        },
        ['-5', '-05', '-0005'],
        ['5', '-50', '--5', '0x5'],
      ],
    ];
    for (const [chain, method, condition, unit, contained, others] of cases) {
      const policy = compile(chain, [rule('a', 'ALLOW', [condition], method)]);
      const action = { method, units: [{ label: 'unit', ...unit }] } as PolicyAction;
      const [{ candidates } = { candidates: [] }] = collectLookups(policy, action, 0);
      const isIn = (item: string) => candidates.map((candidate) => isItem(item, candidate));
      expect(contained.map(isIn)).toEqual(contained.map(() => [true]));
      expect(others.map(isIn)).toEqual(others.map(() => [false]));
    }
  });

  test('different look-ups have different keys', () => {
    const keys = [
      { ...nothing, exact: ['1'] },
      { ...nothing, ignoringCase: ['1'] },
      { ...nothing, numbers: ['1'] },
      { ...nothing, exact: ['1', '0x1'] },
      { ...nothing, exact: ['1,0x1'] },
    ].map(setCandidateKey);
    expect(new Set(keys).size).toBe(5);
  });
});
