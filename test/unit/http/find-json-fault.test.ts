import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findJsonFault } from '../../../src/http/find-json-fault.ts';

const faults: [text: string, offset: number, expected: string][] = [
  ['', 0, 'a value'],
  ['{', 1, 'a property name in double quotes or `}`'],
  ['{"a"', 4, '`:`'],
  ['{"a":}', 5, 'a value'],
  ['{"a":1,}', 7, 'a property name in double quotes'],
  ['{"a":1 "b":2}', 7, '`,` or `}`'],
  ['[1 2]', 3, '`,` or `]`'],
  ['[1,]', 3, 'a value'],
  ['{a:1}', 1, 'a property name in double quotes or `}`'],
  ["{'a':1}", 1, 'a property name in double quotes or `}`'],
  ['01', 1, 'the end of the text'],
  ['nul', 0, 'a value'],
  ['"a', 2, 'a closing double quote; control characters and backslashes must be escaped'],
  ['"a\tb"', 2, 'a closing double quote; control characters and backslashes must be escaped'],
  ['"\\x"', 1, 'a closing double quote; control characters and backslashes must be escaped'],
  ['{} {}', 3, 'the end of the text'],
  ['\ufeff{}', 0, 'a value'],
];

test.each(faults)('%j breaks at %i', (text, offset, expected) => {
  expect(findJsonFault(text)).toMatchObject({ offset, expected });
});

test('line and column are counted from 1', () => {
  expect(findJsonFault('{\n  "a": 1,\n  "b": x\n}')).toEqual({
    offset: 19,
    line: 3,
    column: 8,
    expected: 'a value',
  });
});

test('nesting deeper than the call stack is supported', () => {
  const depth = 200_000;
  expect(findJsonFault('['.repeat(depth))).toMatchObject({ offset: depth });
  expect(findJsonFault('['.repeat(depth) + ']'.repeat(depth))).toBeUndefined();
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('it finds a fault exactly when JSON.parse throws', () => {
  // Texts close to JSON: shuffled and truncated pieces of its grammar.
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u00e9"',
    '"',
    '1',
    '-0',
    '1.5e3',
    'true',
    'null',
    ' ',
    '\n',
    '\\',
    '.',
  );
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
      (text) => {
        expect(findJsonFault(text) === undefined).toBe(isJson(text));
      },
    ),
    { numRuns: 5_000 },
  );
  fc.assert(
    fc.property(fc.json(), fc.nat(), (json, at) => {
      const cut = json.slice(0, at % (json.length + 1));
      expect(findJsonFault(json)).toBeUndefined();
      expect(findJsonFault(cut) === undefined).toBe(isJson(cut));
    }),
  );
});

test('a long unterminated string is read to the end of the text', () => {
  expect(findJsonFault(`{"a":"${'x'.repeat(1_000_000)}`)?.offset).toBe(1_000_006);
});
