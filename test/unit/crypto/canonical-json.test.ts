import { describe, expect, test } from 'vitest';
import { canonicalJson, NotCanonicalizableError } from '../../../src/engine/crypto/encoding.ts';
import vectors from '../../vectors/rfc8785.json' with { type: 'json' };

describe('canonicalJson', () => {
  test.each(vectors.objects)('canonicalJson writes the published form of $name', ({ input, output }) => {
    expect(canonicalJson(JSON.parse(input))).toBe(output);
  });

  test.each(vectors.numbers)('canonicalJson writes the number $ieee754 as $output', ({ ieee754, output }) => {
    expect(canonicalJson(Buffer.from(ieee754, 'hex').readDoubleBE())).toBe(output);
  });

  test.each([
    ['a lone surrogate', '{"a":"\\ud800"}'],
    ['a lone surrogate as a member name', '{"\\udc00":1}'],
    ['a number beyond the range of doubles', '{"a":1e400}'],
  ])('canonicalJson refuses %s', (_, text) => {
    expect(() => canonicalJson(JSON.parse(text))).toThrow(NotCanonicalizableError);
  });

  test('canonicalJson refuses the absence of a value', () => {
    expect(() => canonicalJson(undefined)).toThrow(NotCanonicalizableError);
  });

  test('canonicalJson keeps members that share a name with the object prototype', () => {
    expect(canonicalJson(JSON.parse('{"toJSON":1,"__proto__":{"b":2},"constructor":3}'))).toBe(
      '{"__proto__":{"b":2},"constructor":3,"toJSON":1}',
    );
  });

  test('canonicalJson does not overflow the stack on a body of a megabyte of brackets', () => {
    const depth = 500_000;
    let value: unknown = [];
    for (let level = 0; level < depth; level += 1) value = [value];
    expect(canonicalJson(value)).toHaveLength(2 * depth + 2);
  });
});
