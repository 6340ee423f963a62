import { parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { calldata, compileRules, type Rule, refusalOfCondition, value } from './compile-rules.ts';

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
