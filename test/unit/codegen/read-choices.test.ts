import { expect, test } from 'vitest';
import { choicesOf } from '../../../codegen/choices/read-choices.ts';

function choices(...lines: string[]) {
  return choicesOf('src/example.ts', lines.join('\n'));
}

test('a comment before a declaration belongs to it and is read to the end of its paragraph', () => {
  expect(
    choices(
      '/**',
      ' * Limits the work of one request.',
      ' *',
      ' * CHOICE: no number is published; this',
      ' * many fit into one header.',
      ' *',
      ' * @throws ApiError',
      ' */',
      'export const MAX_SIGNATURES = 100;',
    ),
  ).toEqual([
    {
      path: 'src/example.ts',
      symbol: 'MAX_SIGNATURES',
      text: 'no number is published; this many fit into one header.',
    },
  ]);
});

test('a line comment inside a function belongs to the function', () => {
  expect(
    choices(
      'export async function transfer(): Promise<void> {',
      '  if (isOver) {',
      '    // CHOICE: refused, because',
      '    // nothing was signed yet.',
      '    throw new Error();',
      '  }',
      '}',
    ),
  ).toEqual([
    { path: 'src/example.ts', symbol: 'transfer', text: 'refused, because nothing was signed yet.' },
  ]);
});

test('a comment on a member names the member, and one-line comments have no end mark', () => {
  expect(
    choices('export interface Options {', '  /** CHOICE: an hour. */', '  readonly lifetimeMs: number;', '}'),
  ).toEqual([{ path: 'src/example.ts', symbol: 'Options.lifetimeMs', text: 'an hour.' }]);
});

test('comments in YAML belong to the operation or schema around them', () => {
  const source = ['paths:', '  /v1/wallets:', '    get:', '      # CHOICE: never signed.', '      tags: []'];
  expect(choicesOf('openapi/wallets.yaml', source.join('\n'))).toEqual([
    { path: 'openapi/wallets.yaml', symbol: '/v1/wallets get tags', text: 'never signed.' },
  ]);
});

test('text that only mentions the mark is not a choice', () => {
  expect(choices("const mark = 'CHOICE: ';", 'const other = 1;')).toEqual([]);
});
