import { afterEach, expect, test, vi } from 'vitest';
import {
  type Column,
  colorOfStatus,
  faultText,
  printable,
  printList,
  relativeTime,
  type Screen,
  table,
} from '../../../src/cli/shell/terminal.ts';

afterEach(() => vi.restoreAllMocks());

function screen(width: number): Screen {
  return {
    isTerminal: Number.isFinite(width),
    width,
    nowMs: 0,
    paint: (color, text) => `<${color}>${text}</>`,
  };
}

interface Row {
  readonly name: string;
  readonly id: string;
  readonly size: string;
}

const columns: readonly Column<Row>[] = [
  { title: 'name', text: ({ name }) => name, canBeCut: true },
  { title: 'id', text: ({ id }) => id },
  { title: 'size', text: ({ size }) => size, isNumber: true },
];
const rows = [
  { name: 'Treasury', id: 'fmfdj6yqly31huorjqzq38zc', size: '1' },
  { name: 'A name that is much too long for a table', id: 'n9q2m4x7c0v5b8k1z3w6y0ta', size: '20' },
];
const plain = (text: string): string[] => text.replaceAll(/<\w+>|<\/>/g, '').split('\n');

test('a pipe gets whole lines without a header', () => {
  expect(table(columns, rows, screen(Number.POSITIVE_INFINITY)).split('\n')).toEqual([
    `Treasury${' '.repeat(32)}  fmfdj6yqly31huorjqzq38zc   1`,
    'A name that is much too long for a table  n9q2m4x7c0v5b8k1z3w6y0ta  20',
  ]);
});

test('a terminal gets a header; names are cut to fit, ids are not', () => {
  const lines = plain(table(columns, rows, screen(50)));
  expect(lines).toEqual([
    'name                id                        size',
    'Treasury            fmfdj6yqly31huorjqzq38zc     1',
    'A name that is mu…  n9q2m4x7c0v5b8k1z3w6y0ta    20',
  ]);
});

test('what does not fit a narrow terminal moves to a second line, and no line is too wide', () => {
  const lines = plain(table(columns, rows, screen(36)));
  expect(lines).toEqual([
    ...['name      id', '  size'],
    ...['Treasury  fmfdj6yqly31huorjqzq38zc', '     1'],
    ...['A name …  n9q2m4x7c0v5b8k1z3w6y0ta', '    20'],
  ]);
});

test('wide characters take two columns, and control characters change nothing', () => {
  const wide = [
    { name: '金庫', id: 'a', size: '1' },
    { name: '\u001B[2Jx\u0007y', id: 'b', size: '2' },
  ];
  expect(table(columns, wide, screen(Number.POSITIVE_INFINITY))).toBe('金庫  a  1\nx y   b  2');
  expect(printable('a\u001B[31mb\r\n')).toBe('ab  ');
});

test('times are relative in both directions, in the largest unit that fits', () => {
  expect([0, -900, -3000, 200_000, -7_200_000, 3 * 86_400_000].map((at) => relativeTime(at, 0))).toEqual([
    ...['now', 'now', '3 s ago', 'in 3 min', '2 h ago', 'in 3 d'],
  ]);
});

test('a status has the color of its class', () => {
  expect([200, 404, 503, null].map(colorOfStatus)).toEqual(['green', 'yellow', 'red', 'red']);
});

test('an error on a terminal is the cause, and what to do on the next line', () => {
  const message = 'port 4010 is in use; stop the other process';
  expect(faultText(message, screen(80))).toBe(
    '<red>custos:</> port 4010 is in use\n<cyan>     →</>  Stop the other process',
  );
  expect(faultText(message, { ...screen(80), isTerminal: false })).toBe(`<red>custos:</> ${message}`);
});

test('a watched list is printed again only when it has changed, until it is aborted', async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const states = [[], rows.slice(0, 1), rows.slice(0, 1), rows];
  const stop = new AbortController();
  let reads = 0;
  const read = async () => {
    const state = states[reads++]!;
    if (reads === states.length) stop.abort();
    return state;
  };
  await printList(read, { columns }, { json: true, watch: true, signal: stop.signal });
  expect(reads).toBe(4);
  expect(log.mock.calls.map(([text]) => String(text).split('\n').length)).toEqual([1, 2]);
});
