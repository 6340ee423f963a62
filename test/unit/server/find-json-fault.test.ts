import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findJsonFault } from '../../../src/server/parse-body.ts';

const faults: [text: string, column: number, expected: string][] = [
  ['', 1, 'a value'],
  ['{', 2, 'a property name in double quotes or `}`'],
  ['{"a"', 5, '`:`'],
  ['{"a":}', 6, 'a value'],
  ['{"a":1', 7, '`,` or `}`'],
  ['{"a":1,}', 8, 'a property name in double quotes'],
  ['{"a":1 "b":2}', 8, '`,` or `}`'],
  ['{"a":[1}', 8, '`,` or `]`'],
  ['[1 2]', 4, '`,` or `]`'],
  ['[1,]', 4, 'a value'],
  ['[}', 2, 'a value or `]`'],
  ['[[1]', 5, '`,` or `]`'],
  ['[1 x]', 4, '`,` or `]`'],
  ['{a:1}', 2, 'a property name in double quotes or `}`'],
  ["{'a':1}", 2, 'a property name in double quotes or `}`'],
  ['01', 2, 'the end of the text'],
  ['[1.]', 2, 'a complete number'],
  ['nul', 1, 'a value'],
  ['[1] // the end', 5, 'the end of the text'],
  ['["a]', 2, 'a closing double quote of this string, on the same line'],
  ['["a\nb"]', 2, 'a closing double quote of this string, on the same line'],
  ['["a\tb"]', 2, 'control characters of this string to be escaped'],
  ['["\\x"]', 2, 'backslashes of this string to be escaped'],
  ['["\\u12"]', 2, 'four hex digits after each `\\u` of this string'],
  ['{} {}', 4, 'the end of the text'],
  ['\ufeff{}', 1, 'a value'],
];

test.each(faults)('%j breaks at column %i', (text, column, expected) => {
  expect(findJsonFault(text)).toEqual({ line: 1, column, expected });
});

test('line and column are counted from 1', () => {
  expect(findJsonFault('{\n  "a": 1,\n  "b": x\n}')).toEqual({ line: 3, column: 8, expected: 'a value' });
});

test('what follows a fault may nest deeper than the call stack', () => {
  const deep = '['.repeat(1_000_000);
  expect(findJsonFault(`"\n${deep}`)).toMatchObject({ column: 1 });
  expect(findJsonFault(`]${deep}`)).toMatchObject({ column: 1 });
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

test('a long string that does not end is a fault where it begins', () => {
  expect(findJsonFault(`{"a":"${'x'.repeat(1_000_000)}`)?.column).toBe(6);
});
