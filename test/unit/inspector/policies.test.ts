import { describe, expect, test } from 'vitest';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { amountText, baseUnits, unitOf } from '../../../src/engine/assets/amount-units.ts';
import { compilePolicy, type RuleInput } from '../../../src/engine/policy/compile.ts';
import {
  benchText,
  caseOf,
  firstCase,
  loadCases,
  saveCases,
} from '../../../src/web/inspector/policies/bench.ts';
import {
  type Condition,
  conditionText,
  declarationOf,
  fieldOf,
  fieldsOf,
  methodsOf,
  operatorsOf,
  operatorText,
  prefixOf,
  sourcesOf,
  valueInputOf,
} from '../../../src/web/inspector/policies/conditions.ts';
import {
  createBody,
  draftIssues,
  draftOf,
  draftText,
  firstDraft,
  issuesAt,
  judgedPart,
  moved,
  newCondition,
  newRule,
  readDraft,
  replaced,
  updateBody,
  withField,
  withOperator,
  withSource,
} from '../../../src/web/inspector/policies/draft.ts';
import { chainTypes } from '../../../src/web/inspector/wallet-facts.ts';

const schemas = document.components.schemas;
const condition = (change: Partial<Condition>): Condition => ({
  ...{ field_source: 'message', field: 'content', operator: 'eq', value: 'x' },
  ...change,
});

/** A value that a field of this kind accepts. */
const valueFor: Readonly<Record<string, string>> = {
  number: '1',
  decimal: '1.5',
  boolean: 'true',
  evm_address: `0x${'11'.repeat(20)}`,
  tron_address: `41${'11'.repeat(20)}`,
  solana_address: '11111111111111111111111111111111',
  xrpl_address: 'rrrrrrrrrrrrrrrrrrrrrhoLvTp',
  xrpl_currency: 'USD',
  sui_address: '0x1',
  hex: '0x11',
};

function compile(chainType: string, rule: Omit<RuleInput, 'id' | 'name' | 'action'>): void {
  compilePolicy({
    id: 'p',
    chain_type: chainType,
    rules: [{ ...rule, id: 'r', name: 'r', action: 'ALLOW' }],
  });
}

describe('the choices of the rule editor', () => {
  test('every chain type of the contract has methods, and every source has a method that it fits', () => {
    expect([...chainTypes].sort()).toEqual([...schemas.WalletChainType.enum].sort());
    const offered = new Set(
      chainTypes.flatMap((type) => methodsOf(type).flatMap((method) => sourcesOf(type, method))),
    );
    expect([...offered].sort()).toEqual(Object.keys(schemas.PolicyCondition.discriminator.mapping).sort());
    expect(methodsOf('constructor')).toEqual([]);
  });

  test('the engine accepts every combination that is offered', () => {
    let combinations = 0;
    for (const type of chainTypes) {
      for (const method of methodsOf(type)) {
        for (const source of sourcesOf(type, method)) {
          const start = withSource(condition({}), source);
          for (const name of Object.keys(fieldsOf(start))) {
            const chosen = withField(start, name);
            for (const operator of operatorsOf(chosen)) {
              const { kind, values } = fieldOf(chosen)!;
              const text =
                name === 'function_name' ? 'transfer' : (values?.[0] ?? valueFor[kind] ?? 'Payment');
              const value = operator === 'in_condition_set' ? 'a'.repeat(24) : text;
              const made = withOperator({ ...chosen, value }, operator);
              compile(type, { method, conditions: [made as RuleInput['conditions'][number]] });
              combinations += 1;
            }
          }
        }
      }
    }
    expect(combinations).toBeGreaterThan(1000);
  });

  test('the engine refuses an operator that is not offered', () => {
    const chosen = condition({ operator: 'gt', value: '1' });
    expect(operatorsOf(chosen)).not.toContain('gt');
    const rule = { method: 'personal_sign', conditions: [chosen as RuleInput['conditions'][number]] };
    expect(() => compile('ethereum', rule)).toThrow('does not apply to the field');
  });

  test('an ABI and typed data declare their fields', () => {
    const abi = [
      {
        ...{ type: 'function', name: 'pay' },
        inputs: [
          { name: 'order', type: 'tuple', components: [{ name: 'amount', type: 'uint96' }] },
          { name: 'payees', type: 'address[]' },
        ],
      },
      { type: 'event', name: 'Paid', inputs: [] },
    ];
    const call = condition({ field_source: 'ethereum_calldata', field: 'pay.order.amount', abi });
    expect(Object.entries(fieldsOf(call)).map(([name, { kind }]) => [name, kind])).toEqual([
      ['function_name', 'text'],
      ['pay.order.amount', 'number'],
      ['pay.payees', 'evm_address'],
    ]);
    expect(operatorsOf(call)).toContain('lte');
    const typed = {
      primary_type: 'Mail',
      types: { Mail: [{ name: 'from', type: 'Person' }], Person: [{ name: 'wallet', type: 'address' }] },
    };
    const mail = condition({ field_source: 'ethereum_typed_data_message', typed_data: typed });
    expect(Object.keys(fieldsOf(mail))).toEqual(['from.wallet']);
    expect(declarationOf('ethereum_typed_data_message')).toBe('typed_data');
    expect(fieldsOf(condition({ field_source: 'ethereum_calldata', abi: 'x' }))).toHaveProperty(
      'function_name',
    );
  });

  test('a sum of past requests is a field with a prefix', () => {
    expect(prefixOf('reference')).toBe('aggregation.');
    const sum = condition({ field_source: 'reference', field: 'aggregation.abc' });
    expect(operatorsOf(sum)).toContain('lte');
    expect(fieldOf(condition({ field_source: 'reference', field: 'abc' }))).toBeUndefined();
  });

  test('the input of a value fits the field and the operator', () => {
    const cap = condition({ field_source: 'ethereum_transaction', field: 'value', operator: 'lte' });
    expect(valueInputOf(cap)).toMatchObject({ form: 'line', mode: 'numeric' });
    expect(valueInputOf({ ...cap, operator: 'in' })).toMatchObject({ form: 'lines' });
    const payer = condition({ field_source: 'tempo_transaction', field: 'fee_payer_signature' });
    expect(valueInputOf(payer)).toMatchObject({ form: 'choice', choices: ['true', 'false'] });
    const command = condition({ field_source: 'sui_transaction_command', field: 'commandName' });
    expect(valueInputOf(command).choices).toEqual(schemas.SuiCommandName.enum);
    expect(valueInputOf({ ...cap, operator: 'in_condition_set' }).example).toContain('condition set');
  });

  test('every operator of the contract has words', () => {
    for (const operator of schemas.ConditionOperator.enum) {
      expect(operatorText(operator)).not.toBe('');
    }
    expect(conditionText(condition({ operator: 'in', value: ['a', 'b'] }))).toBe(
      'content is one of "a", "b"',
    );
  });

  test('what a condition names by an id is described by its name', () => {
    const ether = { symbol: 'ETH', decimals: 18 };
    const names = {
      sums: new Map([['a1', { name: 'ETH sent in a day', unit: ether }]]),
      sets: new Map([['s1', 'Allowed receivers']]),
    };
    const sum = condition({ field_source: 'reference', field: 'aggregation.a1', operator: 'lte' });
    expect(conditionText({ ...sum, value: '2000000000000000000' }, [], names)).toBe(
      'ETH sent in a day is at most 2 ETH',
    );
    expect(conditionText({ ...sum, field: 'aggregation.a2', value: '2' }, [], names)).toBe(
      'aggregation.a2 is at most "2"',
    );
    const receiver = condition({ field_source: 'ethereum_transaction', field: 'to' });
    const inSet = { ...receiver, operator: 'in_condition_set', value: 's1' };
    expect(conditionText(inSet, [], names)).toBe('to is in the condition set Allowed receivers');
    expect(conditionText(inSet)).toBe('to is in the condition set "s1"');
  });

  test('an amount is read and written in the unit of its asset', () => {
    const cap = condition({ field_source: 'ethereum_transaction', field: 'value', operator: 'lte' });
    const ether = { symbol: 'ETH', decimals: 18 };
    expect(unitOf(cap, [])).toEqual(ether);
    expect(conditionText({ ...cap, value: '100000000000000000' })).toBe('value is at most 0.1 ETH');
    const onPolygon = { ...cap, field: 'chain_id', operator: 'eq', value: '137' };
    expect(unitOf(cap, [cap, onPolygon])).toEqual({ symbol: 'POL', decimals: 18 });
    const sent = condition({ field_source: 'ethereum_calldata', field: 'transfer.value', operator: 'lte' });
    const token = {
      ...cap,
      field: 'to',
      operator: 'eq',
      value: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    };
    expect(unitOf(sent, [sent, token])).toEqual({ symbol: 'USDC', decimals: 6 });
    // Which token a call moves is not known without its contract, or with several.
    expect(unitOf(sent, [sent])).toBeUndefined();
    expect(unitOf(sent, [{ ...token, operator: 'in', value: [`${token.value}`, '0x1'] }])).toBeUndefined();
    expect(unitOf(sent, [{ ...token, operator: 'neq' }])).toBeUndefined();
    expect(unitOf({ ...cap, field: 'chain_id' }, [])).toBeUndefined();
    expect(
      ['solana_system_program_instruction Transfer.lamports', 'tron_transaction TransferContract.amount'].map(
        (each) => {
          const [field_source = '', field = ''] = each.split(' ');
          return unitOf({ field_source, field }, [])?.symbol;
        },
      ),
    ).toEqual(['SOL', 'TRX']);
    expect(unitOf({ field_source: 'xrpl_transaction', field: 'Payment.Amount.drops' }, [])?.symbol).toBe(
      'XRP',
    );
    expect([amountText('1500000', { symbol: 'USDC', decimals: 6 }), amountText('0x1', ether)]).toEqual([
      '1.5',
      undefined,
    ]);
    expect(
      ['0.1', ' 2 ', '0.', '1e3', '0.0000000000000000001'].map((each) => baseUnits(each, ether)),
    ).toEqual(['100000000000000000', '2000000000000000000', undefined, undefined, undefined]);
  });
});

describe('a draft', () => {
  test('a draft is read as it was written', () => {
    expect(readDraft(draftText(firstDraft))).toEqual(firstDraft);
    const stored = { ...firstDraft, id: 'p', version: '1.0', created_at: 1, owner_id: null };
    expect(draftOf(stored)).toEqual(firstDraft);
    expect(readDraft(JSON.stringify({ version: '1.0', ...firstDraft }))).toEqual(firstDraft);
  });

  test.each([
    ['{', 'the policy is not JSON'],
    ['[]', 'expected the policy to be a JSON object, got `[]`'],
    ['{"name":"a","chain_type":"ethereum","rules":{}}', 'expected rules to be a list'],
    ['{"name":"a","chain_type":"ethereum","rules":[],"x":1}', 'got `x`'],
    ['{"name":"a","chain_type":"ethereum","rules":[{"name":1}]}', 'rules[0].name to be a text, got `1`'],
    [
      draftText({ ...firstDraft, rules: [{ ...firstDraft.rules[0]!, conditions: [{} as Condition] }] }),
      'rules[0].conditions[0].field_source to be a text, got `undefined`',
    ],
  ])('%s is refused with its place', (text, message) => {
    expect(() => readDraft(text)).toThrow(message);
  });

  test('a source, a field and an operator change what no longer fits', () => {
    const cap = withOperator(withSource(condition({ value: '5' }), 'ethereum_transaction'), 'in');
    expect(cap).toMatchObject({ field: 'to', operator: 'in', value: ['5'] });
    expect(withField({ ...cap, operator: 'lte', value: '5' }, 'value').operator).toBe('lte');
    expect(withField(condition({ operator: 'starts_with' }), 'byte_length').operator).toBe('eq');
    expect(withOperator(cap, 'eq').value).toBe('5');
    expect(withSource(cap, 'ethereum_calldata')).toMatchObject({ field: 'function_name' });
    expect(withSource(cap, 'reference').field).toBe('aggregation.');
    expect(withSource(withSource(cap, 'ethereum_calldata'), 'message')).not.toHaveProperty('abi');
  });

  test('rules and conditions are added, moved, replaced and removed', () => {
    expect(newRule({ ...firstDraft, chain_type: 'solana' })).toMatchObject({
      name: 'Rule 2',
      method: 'signTransaction',
    });
    expect(newCondition('ethereum', 'personal_sign').field_source).toBe('system');
    expect(moved(['a', 'b', 'c'], 1, -1)).toEqual(['b', 'a', 'c']);
    expect(moved(['a', 'b'], 1, 1)).toEqual(['a', 'b']);
    expect(replaced(['a', 'b'], 1, 'x')).toEqual(['a', 'x']);
    expect(replaced(['a', 'b'], 0)).toEqual(['b']);
  });

  test('the bodies that create and change a policy have no ids of rules; what is judged has', () => {
    const draft = { ...firstDraft, rules: [{ ...firstDraft.rules[0]!, id: 'r1' }] };
    expect(createBody(draft)).toEqual({ version: '1.0', ...firstDraft });
    expect(updateBody(draft)).toEqual({ name: firstDraft.name, rules: firstDraft.rules });
    expect(judgedPart(draft)).toEqual({ chain_type: 'ethereum', rules: draft.rules });
  });

  test('errors of the server are shown where they belong', () => {
    const issues = draftIssues(
      { message: 'm', issues: [{ pointer: '/policy/rules/1/conditions/0/value', message: 'is required' }] },
      '/policy',
    );
    expect(issuesAt(issues, '/rules/1/conditions/0')).toHaveLength(1);
    expect(issuesAt(issues, '/rules/1/conditions/00')).toEqual([]);
    expect(issuesAt(issues, '/rules/10')).toEqual([]);
    expect(draftIssues({ message: 'no app' }, '/policy')).toEqual([{ pointer: '', message: 'no app' }]);
  });
});

describe('the bench', () => {
  function memory() {
    const items = new Map<string, string>();
    return {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
      removeItem: (name: string) => void items.delete(name),
    };
  }

  test('cases are kept for their policy, and what is not a case is ignored', () => {
    const store = memory();
    const cases = [
      firstCase('ethereum'),
      caseOf({ name: 'a', operation: 'b', request: {}, expected: 'allowed' }),
    ];
    saveCases(store, 'p1', cases);
    expect([loadCases(store, 'p1'), loadCases(store, 'p2')]).toEqual([cases, []]);
    store.setItem('policy-cases/p1', JSON.stringify([cases[0], { name: 'x' }, null]));
    expect(loadCases(store, 'p1')).toEqual([cases[0]]);
    store.setItem('policy-cases/p1', '{');
    expect(loadCases(store, 'p1')).toEqual([]);
    saveCases(store, 'p1', []);
    expect(store.getItem('policy-cases/p1')).toBeNull();
  });

  test('the figure counts the cases that came out as expected', () => {
    const cases = [firstCase('ethereum'), { ...firstCase('ethereum'), expected: 'allowed' as const }];
    const denied = { decision: 'denied' } as never;
    expect(benchText(cases, [])).toBe('2 saved');
    expect(benchText(cases, [denied, denied])).toBe('1 of 2 as expected');
    expect(benchText(cases, [denied, { error: 'x' }])).toBe('1 of 2 as expected');
  });
});
