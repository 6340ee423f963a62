import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  InvalidPathError,
  parseCondition,
  parsePath,
  readText,
  valueAt,
  withValueAt,
} from '../../../src/sandbox/events.ts';

const payload = { a: { b: [1, { c: 'text' }] }, 'd.e': null, 'f/g~h': true };

test.each([
  ['a.b.1.c', ['a', 'b', '1', 'c'], 'text'],
  ['/a/b/0', ['a', 'b', '0'], 1],
  ['/d.e', ['d.e'], null],
  ['/f~1g~0h', ['f/g~h'], true],
  // RFC 6901 §4: `~01` is `~1`, not `/`.
  ['/~01', ['~1'], undefined],
  ['/', [''], undefined],
  ['toString', ['toString'], undefined],
  ['a.b.length', ['a', 'b', 'length'], undefined],
])('%s', (text, path, value) => {
  expect(parsePath(text)).toEqual(path);
  expect(valueAt(payload, parsePath(text))).toEqual(value);
});

test.each(['', '.', 'a..b', 'a.', Array.from({ length: 33 }, () => 'a').join('.')])(
  '`%s` is not a path',
  (text) => {
    expect(() => parsePath(text)).toThrow(InvalidPathError);
  },
);

test('a value that is set can be read, and the original is unchanged', () => {
  const name = fc.string({ minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      fc.object(),
      fc.array(name, { minLength: 1, maxLength: 5 }),
      fc.jsonValue(),
      (value, path, inner) => {
        const before = structuredClone(value);
        let changed: unknown;
        try {
          changed = withValueAt(value, path, inner);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidPathError);
          return;
        }
        expect(valueAt(changed, path)).toEqual(inner);
        expect(value).toEqual(before);
        expect(({} as Record<string, unknown>)[path[0] ?? '']).toBe(Object.prototype[path[0] as never]);
      },
    ),
  );
});

test('list items can be replaced, and lists grow only by one', () => {
  expect(withValueAt([1, 2], ['1'], 'x')).toEqual([1, 'x']);
  expect(withValueAt([1, 2], ['2'], 'x')).toEqual([1, 2, 'x']);
  expect(withValueAt({ a: null }, ['a', 'b'], 1)).toEqual({ a: { b: 1 } });
  for (const place of ['3', '-1', '01', 'x', '1e0', '9999999999']) {
    expect(() => withValueAt([1, 2], [place], 'x')).toThrow(InvalidPathError);
  }
});

test('a value stays text in place of text, and is parsed as JSON elsewhere', () => {
  expect([readText('5', 'text'), readText('null', 'text'), readText('', 'text')]).toEqual(['5', 'null', '']);
  expect([readText('5', 1), readText('true', undefined), readText('null', {})]).toEqual([5, true, null]);
  expect([readText('soon', 1), readText('', null), readText('{"a":', {})]).toEqual(['soon', '', '{"a":']);
});

test.each(['a', '=1', ''])('`%s` is not a condition', (text) => {
  expect(() => parseCondition(text)).toThrow('expected `path=value`');
});

test('a value may contain the equals sign', () => {
  expect(parseCondition('a=b=c')({ a: 'b=c' })).toBe(true);
});
