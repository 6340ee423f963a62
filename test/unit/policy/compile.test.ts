import { type AbiFunction, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { type CompiledPolicy, compilePolicy } from '../../../src/engine/policy/compile.ts';
import { PolicyFormatError } from '../../../src/engine/policy/policy-format-error.ts';

const transfer = parseAbi(['function transfer(address to, uint256 amount)'])[0];
const note = { primary_type: 'Note', types: { Note: [{ name: 'text', type: 'string' }] } };

interface Refusal {
  readonly pointer: string;
  readonly message: string;
}

function refusalOf(compile: () => unknown): Refusal {
  try {
    compile();
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    expect(error.name).toBe('PolicyFormatError');
    return { pointer: error.pointer, message: error.message };
  }
  throw new Error('it was compiled');
}

type Rule = Readonly<Record<string, unknown>>;

function compileRules(chain_type: string, rules: readonly Rule[]): CompiledPolicy {
  const named = rules.map((rule, index) => ({
    id: `rule ${index}`,
    name: 'a rule',
    action: 'ALLOW',
    ...rule,
  }));
  return compilePolicy({ id: 'policy', chain_type, rules: named as never });
}

const refusalOfRule = (chain: string, rule: Rule): Refusal => refusalOf(() => compileRules(chain, [rule]));

/** The refusal of one condition in a rule for transactions, with the pointer relative to the condition. */
function refusalOfCondition(condition: Rule, method = 'eth_signTransaction', chain = 'ethereum'): Refusal {
  const { pointer, message } = refusalOfRule(chain, { method, conditions: [condition] });
  expect(pointer.startsWith('/rules/0/conditions/0/')).toBe(true);
  return { pointer: pointer.slice('/rules/0/conditions/0'.length), message };
}

const value = (operator: string, given: unknown): Rule => ({
  field_source: 'ethereum_transaction',
  field: 'value',
  operator,
  value: given,
});
const calldata = (abi: unknown, field = 'function_name'): Rule => ({
  field_source: 'ethereum_calldata',
  field,
  operator: 'eq',
  value: 'transfer',
  abi,
});

test('a fault is reported with its rule and condition', () => {
  const good = { method: 'eth_signTransaction', conditions: [value('eq', '1')] };
  const bad = { method: 'eth_signTransaction', conditions: [value('eq', '1'), value('eq', 'much')] };
  expect(refusalOf(() => compileRules('ethereum', [good, bad]))).toEqual({
    pointer: '/rules/1/conditions/1/value',
    message: 'expected an integer in decimal or 0x hex, got `much`',
  });
});

test('a valid policy is compiled with its ids', () => {
  const policy = compileRules('ethereum', [{ method: '*', conditions: [] }]);
  expect(policy).toEqual({
    id: 'policy',
    rules: [
      { id: 'rule 0', name: 'a rule', method: '*', action: 'ALLOW', conditions: [], setConditions: [] },
    ],
  });
});

test('an internal error is not reported as a fault of the policy', () => {
  const fault = new TypeError('ours');
  const field = {
    get field_source(): string {
      throw fault;
    },
  };
  expect(() => compileRules('ethereum', [{ method: '*', conditions: [field] }])).toThrow(fault);
});

describe('methods', () => {
  const move = 'transfer, earn_deposit, earn_withdraw';
  const own: Readonly<Record<string, string>> = {
    ethereum: `eth_sendTransaction, eth_signTransaction, eth_signUserOperation, eth_signTypedData_v4, personal_sign, eth_sign7702Authorization, wallet_sendCalls, ${move}`,
    solana: `signTransaction, signAndSendTransaction, signMessage, ${move}`,
    tron: 'tron_sendTransaction, tron_signTransaction, signTransactionBytes, signRawMessageBytes, transfer',
    sui: 'signTransactionBytes, signRawMessageBytes',
    xrpl: 'xrpl_signTransaction',
    stellar: 'signRawMessageBytes',
    'bitcoin-segwit': 'signRawMessageBytes',
  };

  test.each(Object.entries(own))('methods of %s', (chain, methods) => {
    const all = `${methods}, exportPrivateKey, exportSeedPhrase${chain === 'xrpl' ? '' : ', *'}`;
    expect(refusalOfRule(chain, { method: 'eth_fly', conditions: [] })).toEqual({
      pointer: '/rules/0/method',
      message: `\`eth_fly\` is not a rule method of \`${chain}\`; use one of ${all}`,
    });
    for (const method of all.split(', ')) {
      expect(compileRules(chain, [{ method, conditions: [] }]).rules[0]?.method).toBe(method);
    }
  });

  test('a method of another chain is refused', () => {
    expect(refusalOfRule('solana', { method: 'personal_sign', conditions: [] }).pointer).toBe(
      '/rules/0/method',
    );
  });

  test('`*` on the XRP Ledger', () => {
    expect(refusalOfRule('xrpl', { method: '*', conditions: [] }).message).toMatch(
      /^`\*` is not a rule method of `xrpl`;/,
    );
  });
});

describe('sources', () => {
  test('an unknown field source is refused', () => {
    expect(refusalOfCondition({ ...value('eq', '1'), field_source: 'moon' })).toEqual({
      pointer: '/field_source',
      message: 'unknown field source `moon`',
    });
  });

  test.each(['constructor', '__proto__', 'toString'])(
    '`%s`, a member of Object.prototype',
    (field_source) => {
      expect(refusalOfCondition({ ...value('eq', '1'), field_source }).pointer).toBe('/field_source');
    },
  );

  const fields: readonly [source: string, methods: string[], condition: Rule][] = [
    [
      'ethereum_transaction',
      ['eth_sendTransaction', 'eth_signTransaction', 'eth_signUserOperation', 'wallet_sendCalls'],
      value('eq', '1'),
    ],
    [
      'ethereum_calldata',
      ['eth_sendTransaction', 'eth_signTransaction', 'eth_signUserOperation', 'wallet_sendCalls'],
      calldata([transfer]),
    ],
    ['ethereum_typed_data_domain', ['eth_signTypedData_v4'], { field: 'chainId', value: '1' }],
    [
      'ethereum_typed_data_message',
      ['eth_signTypedData_v4'],
      { field: 'text', value: 'a', typed_data: note },
    ],
    [
      'ethereum_7702_authorization',
      ['eth_sign7702Authorization'],
      { field: 'contract', value: `0x${'0'.repeat(40)}` },
    ],
    ['tempo_transaction', ['eth_sendTransaction', 'eth_signTransaction'], { field: 'nonce_key', value: '1' }],
    ['message', ['personal_sign'], { field: 'content', value: 'a' }],
    ['action_request_body', ['transfer', 'earn_deposit', 'earn_withdraw'], { field: 'vault_id', value: 'a' }],
    ['reference', ['eth_signTransaction', 'eth_signUserOperation'], { field: 'aggregation.a', value: '1' }],
    [
      'system',
      ['eth_sendTransaction', 'personal_sign', 'exportPrivateKey', 'transfer'],
      { field: 'current_unix_timestamp', value: '1' },
    ],
  ];

  test.each(fields)('%s is valid for its methods and `*` only', (field_source, methods, condition) => {
    const whole = { operator: 'eq', ...condition, field_source };
    for (const method of [...methods, '*']) {
      expect(compileRules('ethereum', [{ method, conditions: [whole] }]).rules).toHaveLength(1);
    }
    if (field_source === 'system') return;
    const others = ['eth_sendTransaction', 'eth_signTypedData_v4', 'personal_sign', 'exportPrivateKey'];
    for (const method of others.filter((other) => !methods.includes(other))) {
      expect(refusalOfCondition(whole, method)).toEqual({
        pointer: '/field_source',
        message: `\`${field_source}\` does not apply to the method \`${method}\``,
      });
    }
  });

  const ofOtherChains: readonly [
    source: string,
    chain: string,
    methods: string[],
    field: string,
    value: string,
  ][] = [
    [
      'solana_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'programId',
      '1'.repeat(32),
    ],
    [
      'solana_system_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'Transfer.lamports',
      '1',
    ],
    [
      'solana_token_program_instruction',
      'solana',
      ['signTransaction', 'signAndSendTransaction'],
      'Burn.amount',
      '1',
    ],
    ['message', 'solana', ['signMessage'], 'content', 'a'],
    [
      'tron_transaction',
      'tron',
      ['tron_signTransaction', 'tron_sendTransaction', 'signTransactionBytes'],
      'TransferContract.amount',
      '1',
    ],
    ['xrpl_transaction', 'xrpl', ['xrpl_signTransaction'], 'TransactionType', 'Payment'],
    ['sui_transaction_command', 'sui', ['signTransactionBytes'], 'commandName', 'SplitCoins'],
    ['sui_transfer_objects_command', 'sui', ['signTransactionBytes'], 'amount', '1'],
    ['message', 'sui', ['signRawMessageBytes'], 'content', 'a'],
  ];

  test.each(ofOtherChains)('%s of %s is valid for %s only', (field_source, chain, methods, field, given) => {
    const condition = { field_source, field, operator: 'eq', value: given };
    for (const method of methods) {
      expect(compileRules(chain, [{ method, conditions: [condition] }]).rules).toHaveLength(1);
    }
    expect(refusalOfCondition(condition, 'exportPrivateKey', chain).pointer).toBe('/field_source');
  });
});

describe('fields', () => {
  const wrong: readonly [source: string, chain: string, method: string, field: string, more?: Rule][] = [
    ['ethereum_transaction', 'ethereum', 'eth_signTransaction', 'data'],
    ['ethereum_transaction', 'ethereum', 'eth_signTransaction', ''],
    ['ethereum_typed_data_domain', 'ethereum', 'eth_signTypedData_v4', 'name'],
    ['ethereum_typed_data_message', 'ethereum', 'eth_signTypedData_v4', 'texts', { typed_data: note }],
    ['ethereum_typed_data_message', 'ethereum', 'eth_signTypedData_v4', 'text.0', { typed_data: note }],
    ['ethereum_7702_authorization', 'ethereum', 'eth_sign7702Authorization', 'nonce'],
    ['tempo_transaction', 'ethereum', 'eth_signTransaction', 'calls'],
    ['message', 'ethereum', 'personal_sign', 'text'],
    ['action_request_body', 'ethereum', 'transfer', 'source'],
    ['action_request_body', 'ethereum', 'transfer', 'toString'],
    ['reference', 'ethereum', 'eth_signTransaction', 'aggregation.'],
    ['reference', 'ethereum', 'eth_signTransaction', 'aggregation.A'],
    ['reference', 'ethereum', 'eth_signTransaction', 'total.a'],
    ['system', 'ethereum', 'personal_sign', 'version'],
    ['solana_program_instruction', 'solana', 'signTransaction', 'accounts'],
    ['solana_system_program_instruction', 'solana', 'signTransaction', 'Transfer.amount'],
    ['solana_token_program_instruction', 'solana', 'signTransaction', 'Transfer.lamports'],
    ['solana_token_program_instruction', 'solana', 'signTransaction', 'Approve.amount'],
    ['tron_transaction', 'tron', 'tron_signTransaction', 'TransferContract.owner_address'],
    ['xrpl_transaction', 'xrpl', 'xrpl_signTransaction', 'Payment.Amount'],
    ['xrpl_transaction', 'xrpl', 'xrpl_signTransaction', 'TrustSet.LimitAmount.drops'],
    ['sui_transaction_command', 'sui', 'signTransactionBytes', 'name'],
    ['sui_transfer_objects_command', 'sui', 'signTransactionBytes', 'object'],
  ];

  test.each(wrong)('%s of %s, %s: `%s`', (field_source, chain, method, field, more) => {
    const condition = { field_source, field, operator: 'eq', value: '1', ...more };
    expect(refusalOfCondition(condition, method, chain)).toEqual({
      pointer: '/field',
      message: `\`${field}\` is not a field of \`${field_source}\``,
    });
  });
});

describe('operators', () => {
  const equality = 'eq, neq, in, in_condition_set';
  const ordering = `${equality}, gt, gte, lt, lte`;
  const cases: readonly [source: string, field: string, method: string, chain: string, allowed: string][] = [
    ['ethereum_transaction', 'to', 'eth_signTransaction', 'ethereum', equality],
    ['ethereum_transaction', 'value', 'eth_signTransaction', 'ethereum', ordering],
    ['ethereum_transaction', 'chain_id', 'eth_signTransaction', 'ethereum', ordering],
    ['ethereum_typed_data_domain', 'chain_id', 'eth_signTypedData_v4', 'ethereum', ordering],
    ['ethereum_typed_data_domain', 'verifyingContract', 'eth_signTypedData_v4', 'ethereum', equality],
    ['ethereum_7702_authorization', 'contract', 'eth_sign7702Authorization', 'ethereum', equality],
    ['tempo_transaction', 'fee_payer_signature', 'eth_signTransaction', 'ethereum', 'eq'],
    ['tempo_transaction', 'fee_token', 'eth_signTransaction', 'ethereum', equality],
    ['tempo_transaction', 'valid_after', 'eth_signTransaction', 'ethereum', ordering],
    ['message', 'content', 'personal_sign', 'ethereum', `${equality}, contains, starts_with, ends_with`],
    ['message', 'byte_length', 'personal_sign', 'ethereum', 'eq, gt, gte, lt, lte'],
    ['action_request_body', 'source.amount', 'transfer', 'ethereum', 'eq, gt, gte, lt, lte'],
    ['action_request_body', 'source.asset', 'transfer', 'ethereum', equality],
    ['reference', 'aggregation.a', 'eth_signTransaction', 'ethereum', 'eq, neq, in, gt, gte, lt, lte'],
    ['system', 'current_unix_timestamp', 'personal_sign', 'ethereum', ordering],
    ['solana_program_instruction', 'programId', 'signTransaction', 'solana', equality],
    ['solana_system_program_instruction', 'Transfer.lamports', 'signTransaction', 'solana', ordering],
    ['solana_token_program_instruction', 'instructionName', 'signTransaction', 'solana', equality],
    ['tron_transaction', 'TransferContract.to_address', 'tron_signTransaction', 'tron', equality],
    ['xrpl_transaction', 'Payment.Amount.value', 'xrpl_signTransaction', 'xrpl', ordering],
    ['xrpl_transaction', 'Payment.Amount.currency', 'xrpl_signTransaction', 'xrpl', equality],
    ['sui_transaction_command', 'commandName', 'signTransactionBytes', 'sui', 'eq, in'],
    ['sui_transfer_objects_command', 'recipient', 'signTransactionBytes', 'sui', equality],
  ];

  test.each(cases)('operators of %s.%s', (field_source, field, method, chain, allowed) => {
    const all = [
      'eq',
      'neq',
      'gt',
      'gte',
      'lt',
      'lte',
      'in',
      'in_condition_set',
      'contains',
      'starts_with',
      'ends_with',
    ];
    for (const operator of [...all, 'like'].filter((one) => !allowed.split(', ').includes(one))) {
      const refused = refusalOfCondition({ field_source, field, operator, value: '1' }, method, chain);
      expect(refused).toEqual({
        pointer: '/operator',
        message: `\`${operator}\` does not apply to the field \`${field}\`; use one of ${allowed}`,
      });
    }
  });
});

describe('values', () => {
  const bad: readonly [
    kind: string,
    source: string,
    field: string,
    method: string,
    chain: string,
    expected: string,
    values: string[],
  ][] = [
    [
      'number',
      'ethereum_transaction',
      'value',
      'eth_signTransaction',
      'ethereum',
      'an integer in decimal or 0x hex',
      [
        '',
        ' 1',
        '1.0',
        '1e3',
        '0x',
        '0xg',
        '--1',
        '-0x1',
        '+1',
        '1'.repeat(101),
        `0x${'1'.repeat(65)}`,
        'NaN',
      ],
    ],
    [
      'decimal',
      'action_request_body',
      'source.amount',
      'transfer',
      'ethereum',
      'a decimal number',
      ['', '1.', '.5', '-1', '1e3', '1,5', '0x1', '1'.repeat(101), `0.${'1'.repeat(101)}`],
    ],
    [
      'EVM address',
      'ethereum_transaction',
      'to',
      'eth_signTransaction',
      'ethereum',
      'an address of 0x and 40 hex digits',
      [
        '',
        '0x',
        'alice.eth',
        '0'.repeat(42),
        `0x${'0'.repeat(39)}`,
        `0x${'0'.repeat(41)}`,
        `0x${'g'.repeat(40)}`,
      ],
    ],
    [
      'Tron address',
      'tron_transaction',
      'TransferContract.to_address',
      'tron_signTransaction',
      'tron',
      'a Tron address, T… or 41 and 40 hex digits',
      [
        '',
        'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T',
        `42${'0'.repeat(40)}`,
        `41${'0'.repeat(38)}`,
        `41${'0'.repeat(42)}`,
        // Well-formed base58check of a Bitcoin address.
        '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2',
        'T'.repeat(1000),
        // Decoding base58 takes quadratic time, so long texts are refused before.
        'T'.repeat(1_000_000),
      ],
    ],
    [
      'Solana address',
      'solana_program_instruction',
      'programId',
      'signTransaction',
      'solana',
      'a Solana address, base58 of 32 bytes',
      [
        '',
        '1'.repeat(31),
        '1'.repeat(33),
        '1'.repeat(45),
        'O'.repeat(32),
        'z'.repeat(44),
        'z'.repeat(1_000_000),
      ],
    ],
    [
      'XRPL address',
      'xrpl_transaction',
      'Payment.Destination',
      'xrpl_signTransaction',
      'xrpl',
      'an XRP Ledger address, r… or X… without a tag',
      [
        '',
        'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59C',
        'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs5',
        '0OIl',
        // An X-address with a tag and a seed, which use the same alphabet.
        'XVPcpSm47b1CZkf5AkKM9a84dQHe3mTrp5rFfTk6ZZZunEr',
        'sn259rEFXrQrWyx3Q7XneWcwV6dfL',
        'r'.repeat(36),
        'p'.repeat(1_000_000),
      ],
    ],
    [
      'Sui address',
      'sui_transfer_objects_command',
      'recipient',
      'signTransactionBytes',
      'sui',
      'a Sui address, 0x and up to 64 hex digits',
      ['', '0x', 'alice.sui', '2', `0x${'1'.repeat(65)}`, '0xg'],
    ],
    [
      'boolean',
      'tempo_transaction',
      'fee_payer_signature',
      'eth_signTransaction',
      'ethereum',
      '`true` or `false`',
      ['', '1', 'yes', 'True', 'false '],
    ],
  ];

  test.each(bad)('values: no %s', (_, field_source, field, method, chain, expected, values) => {
    for (const given of values) {
      const refused = refusalOfCondition(
        { field_source, field, operator: 'eq', value: given },
        method,
        chain,
      );
      expect(refused).toEqual({ pointer: '/value', message: `expected ${expected}, got \`${given}\`` });
    }
  });

  test('a value of type bytes that is not hex is refused', () => {
    const abi = parseAbi(['function prove(bytes proof)']);
    for (const given of ['', '0x1', 'ab', '0xgg']) {
      expect(refusalOfCondition({ ...calldata(abi, 'prove.proof'), value: given })).toEqual({
        pointer: '/value',
        message: `expected 0x hex bytes, got \`${given}\``,
      });
    }
  });

  test('bytes of a different size than their type', () => {
    const abi = parseAbi([
      'function grant(bytes32 role, bytes4[] selectors)',
      'function pick(bytes4 by)',
      'function pick(bytes32 by)',
    ]);
    const digits = (count: number) => `0x${'ab'.repeat(count)}`;
    const given = (field: string, bytes: number): Rule => ({ ...calldata(abi, field), value: digits(bytes) });
    for (const [field, size, wrong] of [
      ['grant.role', 32, 31],
      ['grant.role', 32, 33],
      ['grant.selectors', 4, 32],
    ] as const) {
      const message = `expected ${size} bytes of 0x hex, got \`${digits(wrong)}\``;
      expect(refusalOfCondition(given(field, wrong))).toEqual({ pointer: '/value', message });
    }
    const listed = { ...given('grant.role', 32), operator: 'in', value: [digits(32), digits(3)] };
    expect(refusalOfCondition(listed).pointer).toBe('/value/1');
    const conditions = [
      given('grant.role', 32),
      given('grant.selectors', 4),
      // It is ambiguous which of the two is called.
      given('pick.by', 4),
      given('pick.by', 32),
    ];
    expect(compileRules('ethereum', [{ method: '*', conditions }]).rules).toHaveLength(1);
    const role = {
      field_source: 'ethereum_typed_data_message',
      field: 'role',
      operator: 'eq',
      typed_data: { primary_type: 'Grant', types: { Grant: [{ name: 'role', type: 'bytes32' }] } },
    };
    expect(refusalOfCondition({ ...role, value: digits(31) }, 'eth_signTypedData_v4')).toEqual({
      pointer: '/value',
      message: `expected 32 bytes of 0x hex, got \`${digits(31)}\``,
    });
  });

  test('the invalid item of a list is named', () => {
    expect(refusalOfCondition(value('in', ['1', '2', 'three']))).toEqual({
      pointer: '/value/2',
      message: 'expected an integer in decimal or 0x hex, got `three`',
    });
  });

  test('`in` takes 1 to 100 values', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => String(index));
    const rule = (count: number) => ({
      method: 'eth_signTransaction',
      conditions: [value('in', many(count))],
    });
    expect(compileRules('ethereum', [rule(1), rule(100)]).rules).toHaveLength(2);
    for (const count of [0, 101]) {
      expect(refusalOfCondition(value('in', many(count)))).toEqual({
        pointer: '/value',
        message: `expected 1 to 100 values, got ${count}`,
      });
    }
  });

  test('`in` takes a list, the others take one value', () => {
    expect(refusalOfCondition(value('in', '1'))).toEqual({
      pointer: '/value',
      message: 'expected an array of strings for the operator `in`',
    });
    expect(refusalOfCondition(value('lte', ['1']))).toEqual({
      pointer: '/value',
      message: 'expected a string for the operator `lte`',
    });
  });

  test('`in_condition_set` takes an id', () => {
    for (const given of ['friends', 'A'.repeat(24), 'a'.repeat(23), 'a'.repeat(25), ['a'.repeat(24)]]) {
      expect(refusalOfCondition(value('in_condition_set', given))).toEqual({
        pointer: '/value',
        message: 'expected the id of a condition set',
      });
    }
  });
});

describe('ABIs', () => {
  const fn = (inputs: unknown, more: Rule = {}): Rule => ({ type: 'function', name: 'f', inputs, ...more });
  const input = (type: string, more: Rule = {}): Rule => ({ name: 'a', type, ...more });
  const invalid = (reason: string): Refusal => ({
    pointer: '/abi/0',
    message: `not a valid function: ${reason}`,
  });

  test('none, or too many items', () => {
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
