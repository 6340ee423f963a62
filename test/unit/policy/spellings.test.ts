import { createHash } from 'node:crypto';
import { base58, base58xrp } from '@scure/base';
import { parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { compileCondition } from '../../../src/engine/policy/compile.ts';
import { type ConditionInput, PolicyFormatError } from '../../../src/engine/policy/condition-source.ts';

const place = { method: '*', action: 'ALLOW' } as const;

/** Whether a condition is valid; an invalid one is refused with the reason. */
function isTaken(condition: Omit<ConditionInput, 'operator'> & Partial<ConditionInput>): boolean {
  try {
    compileCondition({ operator: 'eq', ...condition }, place);
    return true;
  } catch (error) {
    if (error instanceof PolicyFormatError) return false;
    throw error;
  }
}

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
/** payload || first 4 bytes of sha256(sha256(payload)) */
const withChecksum = (payload: readonly number[]): Uint8Array =>
  Uint8Array.of(...payload, ...sha256(sha256(Uint8Array.from(payload))).subarray(0, 4));
const filled = (count: number): number[] => Array.from({ length: count }, () => 7);

describe('the accepted values of conditions', () => {
  const taken = (field_source: string, field: string, values: readonly string[]): boolean[] =>
    values.map((value) => isTaken({ field_source, field, value }));

  test('numbers of up to 100 decimal or 64 hex digits, below zero only in decimal', () => {
    const good = ['0', '-1', '007', '9'.repeat(100), `-${'9'.repeat(100)}`, '0x0', `0x${'fF'.repeat(32)}`];
    const bad = [`-${'9'.repeat(101)}`, '1 ', '1\n', 'a1', '1a', 'x0x1', '0x1 ', '0X1', '-'];
    expect(taken('ethereum_transaction', 'value', good)).toEqual(good.map(() => true));
    expect(taken('ethereum_transaction', 'value', bad)).toEqual(bad.map(() => false));
  });

  test('decimals of up to 100 digits before and after the point', () => {
    const good = ['0', '00.50', `${'9'.repeat(100)}.${'9'.repeat(100)}`];
    const bad = ['1.2.3', '1.5 ', ' 1.5', '1.5\n', '1.5a', 'a1', '1. 5', '1.a', '1x5'];
    expect(taken('action_request_body', 'source.amount', good)).toEqual(good.map(() => true));
    expect(taken('action_request_body', 'source.amount', bad)).toEqual(bad.map(() => false));
  });

  test('EVM addresses in any letter case, without checksum', () => {
    const good = [`0x${'aB'.repeat(20)}`, `0x${'0'.repeat(40)}`];
    const bad = [
      `x0x${'0'.repeat(40)}`,
      `0x${'0'.repeat(40)} `,
      `0x${'0'.repeat(40)}\n`,
      `0X${'0'.repeat(40)}`,
    ];
    expect(taken('ethereum_transaction', 'to', good)).toEqual(good.map(() => true));
    expect(taken('ethereum_transaction', 'to', bad)).toEqual(bad.map(() => false));
  });

  test('bytes as an even number of hex digits, or none', () => {
    const abi = parseAbi(['function prove(bytes proof)']);
    const takes = (value: string): boolean =>
      isTaken({ field_source: 'ethereum_calldata', field: 'prove.proof', value, abi });
    expect(['0x', '0xab', '0xABcd'].map(takes)).toEqual([true, true, true]);
    expect(['0xa', '0xabc', 'x0xab', '0xab ', '0xagab', '0xab\n'].map(takes)).not.toContain(true);
  });

  test('Tron addresses of 21 bytes that begin with 41, in base58check or hex', () => {
    const addressText = (payload: readonly number[]): string => base58.encode(withChecksum(payload));
    const good = [addressText([0x41, ...filled(20)]), `41${'0'.repeat(40)}`, `41${'aB'.repeat(20)}`];
    const bad = [
      addressText([0x41, ...filled(19)]),
      addressText([0x40, ...filled(20)]),
      `x41${'0'.repeat(40)}`,
      `41${'0'.repeat(40)}x`,
      `0x41${'0'.repeat(40)}`,
    ];
    const [field_source, field] = ['tron_transaction', 'TransferContract.to_address'];
    expect(taken(field_source, field, good)).toEqual(good.map(() => true));
    expect(taken(field_source, field, bad)).toEqual(bad.map(() => false));
    // Two ways to write one account.
    const [text = ''] = good;
    expect(base58.decode(text).subarray(0, 21)).toEqual(Uint8Array.of(0x41, ...filled(20)));
  });

  test('Solana addresses of 32 bytes', () => {
    const good = [base58.encode(new Uint8Array(32)), base58.encode(new Uint8Array(32).fill(255))];
    const bad = [31, 33].map((count) => base58.encode(new Uint8Array(count).fill(1)));
    expect(good.map(({ length }) => length)).toEqual([32, 44]);
    expect(taken('solana_program_instruction', 'programId', good)).toEqual([true, true]);
    expect(taken('solana_program_instruction', 'programId', bad)).toEqual([false, false]);
  });

  test('XRPL addresses of 21 bytes that begin with 0, with their checksum', () => {
    const addressText = (payload: readonly number[]): string => base58xrp.encode(withChecksum(payload));
    const otherAlphabet = base58.encode(withChecksum([0, ...filled(20)]));
    const spoilt = withChecksum([0, ...filled(20)]).map((byte, index) => (index === 24 ? byte ^ 1 : byte));
    const good = [addressText([0, ...filled(20)]), addressText([0, ...new Array(20).fill(255)])];
    const bad = [
      addressText([1, ...filled(20)]),
      addressText([0, ...filled(19)]),
      addressText([0, ...filled(21)]),
      base58xrp.encode(spoilt),
      otherAlphabet,
    ];
    expect(taken('xrpl_transaction', 'Payment.Destination', good)).toEqual([true, true]);
    expect(taken('xrpl_transaction', 'Payment.Destination', bad)).toEqual(bad.map(() => false));
  });

  test('Sui addresses of 1 to 64 hex digits', () => {
    const good = ['0x2', `0x${'aB'.repeat(32)}`];
    const bad = ['x0x2', '0x2 ', '0x2g', '0X2'];
    expect(taken('sui_transfer_objects_command', 'recipient', good)).toEqual([true, true]);
    expect(taken('sui_transfer_objects_command', 'recipient', bad)).toEqual(bad.map(() => false));
  });

  test('the id of a condition set, 24 letters and digits', () => {
    const takes = (value: string): boolean =>
      isTaken({
        field_source: 'ethereum_transaction',
        field: 'to',
        operator: 'in_condition_set',
        value,
      } as never);
    const id = 'k'.repeat(23);
    expect([`${id}0`, `${id}z`].map(takes)).toEqual([true, true]);
    expect([`${id}_`, `${id}Z`, `-${id}0`, `${id}0-`, `${id}0\n`].map(takes)).not.toContain(true);
  });

  test('the id of a total, 1 to 64 letters and digits after `aggregation.`', () => {
    const takes = (field: string): boolean => isTaken({ field_source: 'reference', field, value: '1' });
    expect(['aggregation.a', `aggregation.${'z9'.repeat(32)}`].map(takes)).toEqual([true, true]);
    const bad = [
      `aggregation.${'a'.repeat(65)}`,
      'aggregation.a.b',
      'aggregation.-a',
      'aggregation.a-',
      'xaggregation.a',
    ];
    expect(bad.map(takes)).not.toContain(true);
  });
});

describe('the types of an ABI', () => {
  /** The kind that a parameter of the type compares as; undefined when the type is refused. */
  const kindOf = (type: string): string | undefined => {
    const inputs = [{ name: 'a', type }];
    const condition = {
      field_source: 'ethereum_calldata',
      field: 'f.a',
      operator: 'in_condition_set' as const,
      value: 'a'.repeat(24),
      abi: [{ type: 'function', name: 'f', inputs }],
    };
    return isTaken(condition) ? compileCondition(condition, place).kind : undefined;
  };
  const upTo = (count: number): number[] => Array.from({ length: count + 1 }, (_, index) => index);

  test('integers have an explicit size of 8, 16, … or 256 bits', () => {
    for (const sign of ['', 'u']) {
      expect(kindOf(`${sign}int`)).toBe(undefined);
      for (const bits of upTo(300)) {
        const isType = bits > 0 && bits <= 256 && bits % 8 === 0;
        expect([bits, kindOf(`${sign}int${bits}`)]).toEqual([bits, isType ? 'number' : undefined]);
      }
    }
  });

  test('bytes are 1 to 32, or any number', () => {
    expect(kindOf('bytes')).toBe('hex');
    for (const count of upTo(40)) {
      const isType = count > 0 && count <= 32;
      expect([count, kindOf(`bytes${count}`)]).toEqual([count, isType ? 'hex' : undefined]);
    }
  });

  test.each([
    ['address', 'evm_address'],
    ['bool', 'boolean'],
    ['string', 'text'],
    ['address[3]', 'evm_address'],
    ['bool[12][]', 'boolean'],
    ['bytes32[][2]', 'hex'],
    ['string[]', 'text'],
    ['bytes3x', undefined],
    ['xbool', undefined],
    ['boolx', undefined],
    ['uint08', undefined],
    ['bytes01', undefined],
    ['string[a]', undefined],
    ['[]string', undefined],
  ])('%s is compared as %s', (type, kind) => {
    expect(kindOf(type)).toBe(kind);
  });

  test.each(['f', '$f', '_f', 'F', 'f$_9Z'])('%s is a valid function name', (name) => {
    const abi = [{ type: 'function', name, inputs: [] }];
    expect(isTaken({ field_source: 'ethereum_calldata', field: name, value: name, abi })).toBe(true);
  });

  test.each(['f-', '-f', 'f f', 'é', 'f\n'])('%j is not a valid function name', (name) => {
    const abi = [{ type: 'function', name, inputs: [] }];
    expect(isTaken({ field_source: 'ethereum_calldata', field: 'function_name', value: 'f', abi })).toBe(
      false,
    );
  });
});
