import { setTimeout as pause } from 'node:timers/promises';
import { stripVTControlCharacters, styleText } from 'node:util';
import { systemClock } from '../../adapters/runtime.ts';
import { asStarted } from '../../config/client.ts';

// Formats the output of commands: colors, relative times, tables, lists that are watched, and progress.
//
// CHOICE: on a terminal, tables have a header, relative times and colors. In a pipe, they have no header and no colors,
// and times are exact, so that scripts can read the lines. `NO_COLOR` and `FORCE_COLOR` are respected.

export type Color = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow';

/** The output of a command: a terminal or a pipe. */
export interface Screen {
  readonly isTerminal: boolean;
  /** The number of columns; infinite in a pipe. */
  readonly width: number;
  readonly nowMs: number;
  paint(color: Color, text: string): string;
}

type Output = Pick<NodeJS.WriteStream, 'isTTY' | 'columns'> & NodeJS.WritableStream;

export function screenOf(stream: Output = process.stdout): Screen {
  const isTerminal = stream.isTTY === true;
  return {
    isTerminal,
    width: isTerminal ? stream.columns || 80 : Number.POSITIVE_INFINITY,
    nowMs: systemClock.now(),
    paint: (color, text) => styleText(color, text, { stream }),
  };
}

const spans: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Describes a time relative to now, such as `3 min ago` or `in 2 h`. */
export function relativeTime(atMs: number, nowMs: number): string {
  const distance = Math.abs(atMs - nowMs);
  const [unit, length] = spans.find(([, ms]) => distance >= ms) ?? ['s', 1000];
  const amount = Math.floor(distance / length);
  if (amount === 0) return 'now';
  return atMs < nowMs ? `${amount} ${unit} ago` : `in ${amount} ${unit}`;
}

/** Formats a time: relative to now on a terminal, exact in a pipe. */
export function timeOn(screen: Screen, atMs: number, nowMs = screen.nowMs): string {
  return screen.isTerminal ? relativeTime(atMs, nowMs) : new Date(atMs).toISOString();
}

/** Returns the color of an HTTP status. Null and 0 mean that there was no response. */
export function colorOfStatus(status: number | null): Color {
  if (status === null || status === 0 || status >= 500) return 'red';
  return status >= 400 ? 'yellow' : 'green';
}

export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  readonly color?: ((row: Row) => Color | undefined) | undefined;
  /** Whether the text may be cut if the table is wider than the terminal. Ids are never cut. */
  readonly canBeCut?: boolean;
  readonly isNumber?: boolean;
}

const GAP = '  ';
const MIN_WIDTH = 8;

/**
 * Formats a table that fits the width of the screen. Texts that may be cut are cut first. If that is not enough, the
 * last columns of each row move to a second line. Columns without any text are omitted.
 */
export function table<Row>(all: readonly Column<Row>[], rows: readonly Row[], screen: Screen): string {
  const columns = all.filter(({ text }) => rows.some((row) => text(row) !== ''));
  const cells = rows.map((row) => columns.map(({ text }) => printable(text(row))));
  const widths = columns.map(({ title }, at) =>
    Math.max(screen.isTerminal ? title.length : 0, ...cells.map((row) => widthOf(row[at]!))),
  );
  const total = (): number => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  for (const [at, { canBeCut, title }] of columns.entries()) {
    if (canBeCut !== true || total() <= screen.width) continue;
    const least = Math.min(widths[at]!, Math.max(MIN_WIDTH, title.length));
    widths[at] = Math.max(least, widths[at]! - (total() - screen.width));
  }
  let inLine = columns.length;
  for (let width = total(); width > screen.width && inLine > 1; ) {
    inLine -= 1;
    width -= widths[inLine]! + GAP.length;
  }
  const lineOf = (texts: readonly string[], paint: (at: number, text: string) => string): string => {
    const padded = texts.map((text, at) => {
      const cut = cutTo(text, widths[at]!);
      const space = ' '.repeat(Math.max(0, widths[at]! - widthOf(cut)));
      const isLast = at === inLine - 1 || at === texts.length - 1;
      if (columns[at]!.isNumber === true) return space + paint(at, cut);
      return paint(at, cut) + (isLast ? '' : space);
    });
    const first = padded.slice(0, inLine).join(GAP).trimEnd();
    const second = padded.slice(inLine).join(GAP).trimEnd();
    return second === '' ? first : `${first}\n${GAP}${second}`;
  };
  const header = lineOf(
    columns.map(({ title }) => title),
    (_, text) => screen.paint('dim', text),
  );
  const lines = cells.map((texts, index) =>
    lineOf(texts, (at, text) => {
      const color = columns[at]!.color?.(rows[index]!);
      return color === undefined ? text : screen.paint(color, text);
    }),
  );
  return [...(screen.isTerminal ? [header] : []), ...lines].join('\n');
}

/**
 * Replaces control characters. Users choose names, and control characters in them would change what the terminal shows.
 */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replace(/\p{Cc}/gu, ' ');
}

const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

/** Returns the number of columns that a string takes on the screen. */
function widthOf(text: string): number {
  return segmentsOf(text).reduce((sum, segment) => sum + (WIDE.test(segment) ? 2 : 1), 0);
}

function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let [kept, used] = ['', 0];
  for (const segment of segmentsOf(text)) {
    used += WIDE.test(segment) ? 2 : 1;
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

function segmentsOf(text: string): string[] {
  return Array.from(graphemes.segment(text), ({ segment }) => segment);
}

/** Breaks a string at spaces, so that it fits the width of the screen. Further lines are indented like the first. */
export function wrap(text: string, { width }: Screen): string {
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  for (const word of text.trimStart().split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && widthOf(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(`${indent}${word}`);
  }
  return lines.join('\n');
}

/** The options of a command that prints a list. */
export interface ListFlags {
  json?: boolean;
  watch?: boolean;
}

/** Describes how a command prints a list: its columns, and a sentence for standard error if the list is empty. */
export interface List<Row> {
  readonly columns: readonly Column<Row>[] | ((screen: Screen) => readonly Column<Row>[]);
  readonly empty?: string;
}

const WATCH_MS = 1000;

/**
 * Prints a list as a table, or with `json` one object per line. With `watch`, prints it again whenever it has
 * changed, until `signal` is aborted. A terminal shows only the latest list.
 */
export async function printList<Row extends object>(
  read: () => Promise<readonly Row[]>,
  { columns, empty }: List<Row>,
  { json = false, watch = false, signal }: ListFlags & { readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const isWatched = (): boolean => watch && signal?.aborted !== true;
  let before: string | undefined;
  do {
    const rows = await read();
    const screen = screenOf();
    const shown = typeof columns === 'function' ? columns(screen) : columns;
    const lines = rows.map((row) => JSON.stringify(row));
    const text = json ? lines.join('\n') : table(shown, rows, screen);
    const state = lines.join('\n');
    const isChanged = state !== before || (watch && screen.isTerminal && !json);
    if (isChanged) {
      if (watch && screen.isTerminal && !json) process.stdout.write('\u001B[2J\u001B[H');
      if (rows.length > 0) console.log(text);
      else if (empty !== undefined && before !== state) console.error(`custos: ${empty}`);
    }
    before = state;
    // Aborting the pause ends the list.
    if (isWatched()) await pause(WATCH_MS, undefined, signal && { signal }).catch(() => undefined);
  } while (isWatched());
}

/** Runs work that may take long. After one second, a terminal shows what is being done and for how long. */
export async function withProgress<T>(text: string, work: () => Promise<T>): Promise<T> {
  const { stderr } = process;
  if (!stderr.isTTY) return work();
  const startedMs = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    stderr.write(`\r\u001B[2K${styleText('dim', `${text} … ${seconds} s`, { stream: stderr })}`);
  }, 1000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    stderr.write('\r\u001B[2K');
  }
}

/**
 * Formats an error: the cause, and below it the text after the first semicolon, which says what to do. In a pipe it
 * stays one line.
 */
export function faultText(text: string, screen: Screen = screenOf(process.stderr)): string {
  const message = asStarted(text);
  const prefix = screen.paint('red', 'custos:');
  if (!screen.isTerminal) return `${prefix} ${message}`;
  const [, cause, advice] = /^([^\n;]+); ([^\n]+)$/.exec(message) ?? [];
  if (cause === undefined || advice === undefined) return `${prefix} ${message}`;
  return `${prefix} ${cause}\n${screen.paint('cyan', '     →')}  ${advice[0]!.toUpperCase()}${advice.slice(1)}`;
}

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return /^[A-Za-z0-9_./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
