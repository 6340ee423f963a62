import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createByteReader, InvalidBytesError } from '../../../src/engine/crypto/byte-reader.ts';
import {
  base58ToBytes,
  base64ToBytes,
  bytesTo0xHex,
  bytesToBase58,
  bytesToBase64,
  bytesToHex,
  bytesToUtf8,
  concatBytes,
  equalBytes,
  hexToBytes,
  InvalidEncodingError,
  looseHexToBytes,
  prefixedHexToBytes,
  utf8ToBytes,
} from '../../../src/engine/crypto/encoding.ts';

describe('text encodings of bytes', () => {
  test('text encodings of bytes decode to the original bytes', async () => {
    await fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(hexToBytes(bytesToHex(bytes))).toEqual(bytes);
        expect(prefixedHexToBytes(bytesTo0xHex(bytes))).toEqual(bytes);
        expect(base64ToBytes(bytesToBase64(bytes))).toEqual(bytes);
        expect(base58ToBytes(bytesToBase58(bytes))).toEqual(bytes);
      }),
    );
  });

  test('hex is accepted with or without 0x where both are allowed, in any case', () => {
    expect(looseHexToBytes('0xAbCd')).toEqual(Uint8Array.of(0xab, 0xcd));
    expect(looseHexToBytes('abcd')).toEqual(Uint8Array.of(0xab, 0xcd));
    expect(looseHexToBytes('')).toEqual(new Uint8Array());
  });

  test.each([
    ['hex of half a byte', () => hexToBytes('abc')],
    ['hex with a stray letter', () => hexToBytes('zz')],
    ['hex with 0x where it is not wanted', () => hexToBytes('0xab')],
    ['hex without 0x where it is wanted', () => prefixedHexToBytes('ab')],
    ['base64 without padding', () => base64ToBytes('YQ')],
    ['base64 with white space', () => base64ToBytes('YWFh\nYQ==')],
    ['base64 of the url alphabet', () => base64ToBytes('-_-_')],
    ['base64 with stray trailing bits', () => base64ToBytes('YR==')],
    ['base58 with a letter outside the alphabet', () => base58ToBytes('0OIl')],
    ['base58 of absurd length', () => base58ToBytes('1'.repeat(129))],
  ])('text encodings of bytes refuse %s', (_what, decode) => {
    expect(decode).toThrow(InvalidEncodingError);
  });

  test('malformed UTF-8 is refused', () => {
    expect(bytesToUtf8(utf8ToBytes('zażółć 🔑'))).toBe('zażółć 🔑');
    expect(bytesToUtf8(Uint8Array.of(0xc3, 0x28))).toBeUndefined();
  });

  test('bytes are joined and compared by content', () => {
    expect(concatBytes(Uint8Array.of(1), new Uint8Array(), Uint8Array.of(2, 3))).toEqual(
      Uint8Array.of(1, 2, 3),
    );
    expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2))).toBe(true);
    expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false);
    expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false);
  });
});

describe('the byte reader', () => {
  test('the byte reader reads little-endian numbers and views front to back', () => {
    const reader = createByteReader(
      hexToBytes(`01${'0200'}${'03000000'}${'0400000000000000'}${'ff'.repeat(16)}aabb`),
    );
    expect([reader.u8(), reader.u16(), reader.u32(), reader.u64()]).toEqual([1, 2, 3, 4n]);
    expect(reader.u128()).toBe(2n ** 128n - 1n);
    expect([reader.offset(), reader.remaining()]).toEqual([31, 2]);
    expect(reader.bytes(2)).toEqual(Uint8Array.of(0xaa, 0xbb));
    expect(() => reader.end()).not.toThrow();
    expect(() => reader.u8()).toThrow(InvalidBytesError);
  });

  test('the byte reader reads the part of a larger buffer that it was given', () => {
    expect(createByteReader(Uint8Array.of(9, 1, 0, 9).subarray(1, 3)).u16()).toBe(1);
  });

  test.each([
    ['00', 16, 0n],
    ['7f', 16, 127n],
    ['8001', 16, 128n],
    ['ffff03', 16, 65_535n],
    ['ffffffffffffffffff01', 64, 2n ** 64n - 1n],
  ])('the byte reader reads the length %s', (hex, bits, value) => {
    expect(createByteReader(hexToBytes(hex)).uleb128(bits)).toBe(value);
  });

  test.each([
    ['a length spelt long', '8000', 16],
    ['a length spelt longer', 'ff8000', 16],
    ['a length beyond its bits', '808004', 16],
    ['a length without an end', 'ff'.repeat(20), 64],
    ['a length cut short', '80', 16],
  ])('the byte reader refuses %s', (_what, hex, bits) => {
    expect(() => createByteReader(hexToBytes(hex)).uleb128(bits)).toThrow(InvalidBytesError);
  });

  test('the byte reader refuses trailing bytes', () => {
    expect(() => createByteReader(new Uint8Array(1)).end()).toThrow(
      'expected the end at offset 0, got 1 more bytes',
    );
  });
});
