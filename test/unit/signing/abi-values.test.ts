import { encodeAbiParameters, hexToBytes, parseAbiParameters } from 'viem';
import { describe, expect, test } from 'vitest';
import {
  AbiEncodingError,
  type AbiParameter,
  compileArguments,
} from '../../../src/engine/signing/ethereum/abi-values.ts';

const alice = '0xd8da6bf26964af9d7eed9e03e53415d37aa96045';
const typesOf = (text: string): readonly AbiParameter[] => parseAbiParameters(text) as never;
const encode = (types: string, ...values: readonly unknown[]): string =>
  encodeAbiParameters(typesOf(types) as never, values as never);

/** Words of 32 bytes: a number, or hex digits with `…` where the zeros are. */
function words(...given: readonly (number | string)[]): string {
  const spelled = given.map((word) => {
    const [front = '', back = ''] = (typeof word === 'number' ? `…${word.toString(16)}` : word).split('…');
    return front + '0'.repeat(64 - front.length - back.length) + back;
  });
  return `0x${spelled.join('')}`;
}

const read = (types: string, dataHex: string) =>
  compileArguments(typesOf(types))(hexToBytes(dataHex as never));

/** The fault of the bytes: some are missing, or they are not in canonical encoding. */
function faultOf(types: string, dataHex: string): 'truncated' | 'not canonical' {
  try {
    read(types, dataHex);
  } catch (error) {
    if (error instanceof AbiEncodingError) return error.isTruncated ? 'truncated' : 'not canonical';
    throw error;
  }
  throw new Error('the bytes were read');
}

describe('values, as viem encodes them', () => {
  test.each([
    ['uint256', 2n ** 256n - 1n, String(2n ** 256n - 1n)],
    ['uint256', 0n, '0'],
    ['uint8', 255, '255'],
    ['uint136', 2n ** 136n - 1n, String(2n ** 136n - 1n)],
    ['int256', -(2n ** 255n), String(-(2n ** 255n))],
    ['int8', -128, '-128'],
    ['int8', 127, '127'],
    ['int64', -1n, '-1'],
    ['address', alice, alice],
    ['bool', true, 'true'],
    ['bool', false, 'false'],
    ['bytes1', '0xab', '0xab'],
    ['bytes32', `0x${'cd'.repeat(32)}`, `0x${'cd'.repeat(32)}`],
    ['bytes', '0x', '0x'],
    ['bytes', `0x${'0a'.repeat(33)}`, `0x${'0a'.repeat(33)}`],
    ['string', '', ''],
    ['string', 'Zoë pays 🪙', 'Zoë pays 🪙'],
    ['uint8[]', [], []],
    ['uint8[]', [1, 2], ['1', '2']],
    ['uint8[2]', [1, 2], ['1', '2']],
    ['uint8[2][]', [[1, 2]], [['1', '2']]],
    ['uint8[][2]', [[1], []], [['1'], []]],
    ['string[2]', ['a', 'b'], ['a', 'b']],
    ['string[][]', [['a'], [], ['b', 'c']], [['a'], [], ['b', 'c']]],
    ['(uint8, bool)', [7, true], ['7', 'true']],
    ['(uint8, string)[]', [[7, 'x']], [['7', 'x']]],
    [
      '(uint8, (bytes, bool)[2])',
      [
        7,
        [
          ['0x01', true],
          ['0x', false],
        ],
      ],
      [
        '7',
        [
          ['0x01', 'true'],
          ['0x', 'false'],
        ],
      ],
    ],
  ])('values, as viem encodes them: %s: %o', (types, value, text) => {
    // Between two other values, which must be found as well.
    const around = encode(`string, ${types}, uint8`, 'before', value, 9);
    expect(read(`string, ${types}, uint8`, around)).toEqual(['before', text, '9']);
    expect(read(types, encode(types, value))).toEqual([text]);
  });

  test('a byte order mark belongs to the text', () => {
    expect(read('string', words(0x20, 4, 'efbbbf61…'))).toEqual(['\uFEFFa']);
  });

  test('a view into a larger request', () => {
    const within = hexToBytes(`0x${'ff'.repeat(5)}${encode('bytes', '0xabcd').slice(2)}` as const).subarray(
      5,
    );
    expect(compileArguments(typesOf('bytes'))(within)).toEqual(['0xabcd']);
  });
});

describe('bits beyond the size of the type', () => {
  test.each([
    ['uint8', 256],
    ['uint248', `01${'0'.repeat(62)}`],
    ['int8', 128],
    ['int8', `${'f'.repeat(62)}7f`],
    ['int8', 0xff],
    ['int64', '8000000000000000'.padStart(64, '0')],
    ['address', `01${alice.slice(2).padStart(62, '0')}`],
    ['address', `1${alice.slice(2)}`.padStart(64, '0')],
    ['bool', 2],
    ['bool', 0x11],
    ['bool', '1…1'],
    ['bytes1', 'ab01…'],
    ['bytes1', 'ab…1'],
    ['bytes31', `${'ab'.repeat(31)}01`],
  ])('bits beyond the size of the type: %s in %s', (type, word) => {
    expect(faultOf(type, words(word))).toBe('not canonical');
  });

  test.each([
    ['bytes', 1, 'ab01…'],
    ['bytes', 1, 'ab…1'],
    ['bytes', 31, `${'ab'.repeat(31)}01`],
    ['string', 1, '6101…'],
  ])('after the content of %s, length %i', (type, length, content) => {
    expect(faultOf(type, words(0x20, length, content))).toBe('not canonical');
  });

  test('text that is not UTF-8', () => {
    expect(faultOf('string', words(0x20, 1, 'ff…'))).toBe('not canonical');
    expect(faultOf('string', words(0x20, 3, 'eda080…'))).toBe('not canonical');
  });
});

describe('content at another position than encoders use', () => {
  test.each([
    ['an offset into the heads', 'bytes', words(0, 0)],
    ['an offset that is not a multiple of a word', 'bytes', words(0x21, 0, 0)],
    ['a gap before the content', 'bytes', words(0x40, 0, 0)],
    ['two that share one content', 'bytes, bytes', words(0x40, 0x40, 0)],
    ['two in the other order', 'bytes, bytes', words(0x60, 0x40, 0, 0)],
    ['an offset from elsewhere, in an array', 'bytes[]', words(0x20, 1, 0x40, 0, 0)],
    ['an offset from elsewhere, in a tuple', '(bytes, uint8)', words(0x20, 0x20, 7, 0)],
    ['a word behind the arguments', 'uint8', words(1, 0)],
    ['a word behind the content', 'bytes', words(0x20, 0, 0)],
    ['a word behind the last element', 'uint8[]', words(0x20, 1, 7, 0)],
    ['a byte behind the arguments', 'uint8', `${words(1)}00`],
  ])('content at another position than encoders use: %s', (_, types, dataHex) => {
    expect(faultOf(types, dataHex)).toBe('not canonical');
  });
});

describe('missing bytes', () => {
  const most = 2 ** 48 - 1;
  test.each([
    ['all of them', 'uint8', '0x'],
    ['the last byte of a word', 'uint8', words(1).slice(0, -2)],
    ['the second argument', 'uint8, uint8', words(1)],
    ['what an offset points to', 'bytes', words(0x20)],
    ['the content', 'bytes', words(0x20, 1)],
    ['the last byte of the padding', 'bytes', words(0x20, 1, 'ab…').slice(0, -2)],
    ['an element', 'uint8[]', words(0x20, 2, 1)],
    ['an element of a fixed array', 'uint8[2]', words(1)],
    ['the content of an element', 'bytes[2]', words(0x20, 0x40, 0x60, 0)],
    ['a member', '(uint8, bytes)', words(0x20, 1)],
    ['as many as no request has', 'bytes', words(0x20, most)],
    ['as many elements as no request has', 'uint8[]', words(0x20, most)],
    ['as many as no number holds', 'bytes', words(0x20, 'f'.repeat(64))],
    ['more than six bytes can say', 'bytes', words(0x20, `1${'0'.repeat(12)}`.padStart(64, '0'))],
    ['at an offset behind everything', 'bytes', words('f'.repeat(64))],
    ['for an array that claims too much', `uint8[${'9'.repeat(30)}]`, words(1)],
    ['for an array of arrays that claims too much', `bytes[${'9'.repeat(9)}]`, words(0x20, 0x40, 0)],
  ])('missing bytes: %s', (_, types, dataHex) => {
    expect(faultOf(types, dataHex)).toBe('truncated');
  });
});

test('the error names the fault without the bytes', () => {
  const messageOf = (dataHex: string) => {
    try {
      return read('uint8', dataHex);
    } catch (error) {
      return error instanceof Error && `${error.name}: ${error.message}`;
    }
  };
  expect(messageOf('0x')).toBe('AbiEncodingError: the encoded arguments are truncated');
  expect(messageOf(words(256))).toBe('AbiEncodingError: the arguments are not in canonical encoding');
});
