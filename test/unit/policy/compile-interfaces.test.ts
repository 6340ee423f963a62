import { type AbiFunction, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import {
  calldata,
  compileRules,
  note,
  type Refusal,
  type Rule,
  refusalOfCondition,
  transfer,
} from './compile-rules.ts';

describe('ABIs', () => {
  const fn = (inputs: unknown, more: Rule = {}): Rule => ({ type: 'function', name: 'f', inputs, ...more });
  const input = (type: string, more: Rule = {}): Rule => ({ name: 'a', type, ...more });
  const invalid = (reason: string): Refusal => ({
    pointer: '/abi/0',
    message: `not a valid function: ${reason}`,
  });

  test('ABIs have 1 to 200 items', () => {
    const many = (count: number) => Array.from({ length: count }, () => transfer);
    expect(refusalOfCondition(calldata(undefined)).message).toBe('expected 1 to 200 items, got 0');
    expect(refusalOfCondition(calldata([])).message).toBe('expected 1 to 200 items, got 0');
    expect(refusalOfCondition(calldata(many(201)))).toEqual({
      pointer: '/abi',
      message: 'expected 1 to 200 items, got 201',
    });
    const rule = { method: '*', conditions: [calldata(many(200))] };
    expect(compileRules('ethereum', [rule]).rules).toHaveLength(1);
  });

  test('an ABI without a function is refused', () => {
    const event = { type: 'event', name: 'Paid', inputs: [] };
    expect(refusalOfCondition(calldata([event, { type: 'constructor' }, {}]))).toEqual({
      pointer: '/abi',
      message: 'expected at least one item of type `function`',
    });
  });

  test('items that are not functions are skipped', () => {
    const event = { type: 'event', name: 'Paid', inputs: [{ type: 'nonsense' }] };
    const rule = { method: '*', conditions: [calldata([event, transfer])] };
    expect(compileRules('ethereum', [rule]).rules).toHaveLength(1);
  });

  test('the invalid item is named', () => {
    expect(refusalOfCondition(calldata([transfer, fn([input('uint257')])])).pointer).toBe('/abi/1');
  });

  const types = [
    'uint7',
    'uint0',
    'uint264',
    'int1',
    'bytes0',
    'bytes33',
    'float',
    'Address',
    'address payable',
    // With these names a function has another selector than with the canonical `uint256` and `int256`.
    'uint',
    'int[]',
  ];
  test.each([
    ...types,
    'uint256[',
    'uint256[-1]',
    'uint256[0]',
    'uint256[0][2]',
    'uint256[02]',
    'uint256]',
    'ui[2]nt8',
    '[]',
    '',
    'fixed128x18',
    'function',
  ])('the type `%s`', (type) => {
    expect(refusalOfCondition(calldata([fn([input(type)])])).pointer).toBe('/abi/0');
  });

  test('an unknown type, with a message', () => {
    expect(refusalOfCondition(calldata([fn([input('uint257')])]))).toEqual(invalid('unknown type `uint257`'));
    const deep = input('tuple[]', { components: [input('tuple', { components: [input('money')] })] });
    expect(refusalOfCondition(calldata([fn([deep])]))).toEqual(invalid('unknown type `money`'));
  });

  test('a tuple without members, arrays without end', () => {
    expect(refusalOfCondition(calldata([fn([input('tuple')])]))).toEqual(invalid('a tuple needs components'));
    expect(refusalOfCondition(calldata([fn([input('tuple', { components: [] })])]))).toEqual(
      invalid('a tuple needs components'),
    );
    expect(refusalOfCondition(calldata([fn([input(`uint256${'[]'.repeat(17)}`)])]))).toEqual(
      invalid('expected at most 16 nested arrays and tuples'),
    );
    const tuples = (depth: number, type: string): object =>
      depth === 0 ? input(type) : input('tuple[1]', { components: [tuples(depth - 1, type)] });
    expect(refusalOfCondition(calldata([fn([tuples(8, 'uint256[]')])]))).toEqual(
      invalid('expected at most 16 nested arrays and tuples'),
    );
    const rules = [input(`uint256${'[]'.repeat(16)}`), tuples(8, 'uint256')].map((deepest) => ({
      method: '*',
      conditions: [calldata([fn([deepest])])],
    }));
    expect(compileRules('ethereum', rules).rules).toHaveLength(2);
    // Must cause neither deep recursion nor quadratic matching.
    for (const type of [`uint256${'[]'.repeat(200_000)}`, `uint256${'[]'.repeat(200_000)}x`]) {
      expect(refusalOfCondition(calldata([fn([input(type)])], 'f.a')).pointer).toBe('/abi/0');
    }
  });

  test.each([undefined, '', '1f', 'f(', 'a b', 'a.b'])('the function name `%s`', (name) => {
    expect(refusalOfCondition(calldata([{ type: 'function', name, inputs: [] }]))).toEqual(
      invalid('a function needs a name'),
    );
  });

  test('two functions with the same selector', () => {
    // A known collision: both have the selector 0x42966c68.
    const abi = parseAbi([
      'function burn(uint256 amount)',
      'function collate_propagate_storage(bytes16 amount)',
    ]);
    expect(refusalOfCondition(calldata(abi))).toEqual({
      pointer: '/abi/1',
      message: 'not a valid function: it has the same selector as `burn(uint256)`',
    });
  });

  test('a repeated function counts once', () => {
    const renamed = parseAbi(['function transfer(address target, uint256 sum)']);
    const condition = { ...calldata([transfer, ...renamed], 'transfer.sum'), value: '1' };
    expect(compileRules('ethereum', [{ method: '*', conditions: [condition] }]).rules).toHaveLength(1);
  });

  const abi = parseAbi([
    'function pay((address to, uint256[2] amounts) order, bool)',
    'function pick(address by)',
    'function pick(uint256 by)',
  ]);
  test.each([
    'pay.order',
    'pay.order.',
    'pay.order.sum',
    'pay.order.amounts.0.1',
    'pay.2',
    'pay.order.0',
    'pay.',
    'paid',
    'paid.0',
    '',
    '.',
  ])('the unknown field `%s`', (field) => {
    expect(refusalOfCondition(calldata(abi, field))).toEqual({
      pointer: '/field',
      message: `\`${field}\` is not a field of \`ethereum_calldata\``,
    });
  });

  test('a parameter of different types in overloads', () => {
    expect(refusalOfCondition(calldata(abi, 'pick.by'))).toEqual({
      pointer: '/field',
      message: '`pick.by` has different types in the overloads of pick',
    });
  });

  test('a parameter of different types with the same comparison', () => {
    const alike = parseAbi(['function pick(uint8 by)', 'function pick(int256 by)']) as readonly AbiFunction[];
    const condition = { ...calldata(alike, 'pick.by'), value: '1' };
    expect(compileRules('ethereum', [{ method: '*', conditions: [condition] }]).rules).toHaveLength(1);
  });

  test('Tron contract calls have the same checks', () => {
    const condition = {
      ...calldata([fn([input('money')])]),
      field_source: 'tron_trigger_smart_contract_data',
    };
    expect(refusalOfCondition(condition, 'tron_signTransaction', 'tron')).toEqual(
      invalid('unknown type `money`'),
    );
  });
});

describe('typed data', () => {
  const condition = (typed_data: unknown, field = 'text'): Rule => ({
    field_source: 'ethereum_typed_data_message',
    field,
    operator: 'eq',
    value: 'hello',
    ...(typed_data === undefined ? {} : { typed_data }),
  });
  const text = { name: 'text', type: 'string' };
  const refused = (typed_data: unknown, field?: string): Refusal =>
    refusalOfCondition(condition(typed_data, field), 'eth_signTypedData_v4');

  test('typed data without types is refused', () => {
    expect(refused(undefined)).toEqual({ pointer: '/typed_data', message: 'is required' });
  });

  test('an undefined primary type', () => {
    for (const primary_type of ['Memo', 'toString']) {
      expect(refused({ ...note, primary_type })).toEqual({
        pointer: '/typed_data/primary_type',
        message: `expected a type in \`types\`, got \`${primary_type}\``,
      });
    }
  });

  test('the domain as primary type: its message is not signed', () => {
    const types = { EIP712Domain: [{ name: 'text', type: 'string' }] };
    expect(refused({ primary_type: 'EIP712Domain', types })).toEqual({
      pointer: '/typed_data/primary_type',
      message: 'expected a message type, got `EIP712Domain`',
    });
  });

  test.each(['money', 'string[', 'string[]x', 'xbool', 'toString'])('a field of the type `%s`', (type) => {
    expect(refused({ ...note, types: { Note: [{ name: 'text', type }] } })).toEqual({
      pointer: '/typed_data/types/Note',
      message: `\`text\` has the unknown type \`${type}\``,
    });
  });

  test('a struct instead of a value', () => {
    const types = { Note: [{ name: 'text', type: 'Text' }], Text: [{ name: 'body', type: 'string' }] };
    expect(refused({ ...note, types }).pointer).toBe('/field');
  });

  test.each<[what: string, types: object, pointer: string]>([
    ['an unknown type next to the field', { Note: [text, { name: 'age', type: 'uint7' }] }, '/Note'],
    ['such a type in another struct', { Note: [text], Page: [{ name: 'a', type: 'bytes33[2]' }] }, '/Page'],
    ['a member twice', { Note: [text, { name: 'text', type: 'uint256' }] }, '/Note'],
    ['a member with a comma', { Note: [text, { name: 'a,b', type: 'string' }] }, '/Note'],
    ['a struct with a space', { Note: [text], 'a b': [text] }, ''],
    ['a struct named as a type', { Note: [text], uint8: [text] }, ''],
  ])('types that cannot be signed: %s', (_, types, pointer) => {
    expect(refused({ ...note, types }).pointer).toBe(`/typed_data/types${pointer}`);
  });

  test('a type of more than 16 nested arrays is refused', () => {
    const type = `string${'[]'.repeat(17)}`;
    expect(refused({ ...note, types: { Note: [{ name: 'text', type }] } })).toEqual({
      pointer: '/typed_data/types',
      message: 'expected at most 16 nested arrays in `text`',
    });
    const types = { Note: [{ name: 'text', type: `string${'[]'.repeat(16)}` }] };
    const conditions = [condition({ ...note, types })];
    expect(compileRules('ethereum', [{ method: '*', conditions }]).rules).toHaveLength(1);
  });

  test.each(['text.more', 'other', 'line', 'line.text', 'lines.0', 'lines.0.0.item', ''])(
    'the field `%s`',
    (field) => {
      const types = {
        Note: [
          { name: 'text', type: 'string' },
          { name: 'line', type: 'Line' },
          { name: 'lines', type: 'Line[]' },
        ],
        Line: [{ name: 'item', type: 'string' }],
      };
      expect(refused({ primary_type: 'Note', types }, field).pointer).toBe('/field');
    },
  );
});
