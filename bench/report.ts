import { leastCpu, type Measured, median, mostPerSecond, spreadOf } from './measure/rounds.ts';

/** A goal of the project with its measured value. */
export interface Goal {
  /** `G1` and so on; `figure`: what a figure of docs/figures aims at; `-` for any other. */
  readonly id: string;
  readonly what: string;
  readonly measured: number;
  readonly limit: number;
  readonly direction: 'at most' | 'at least';
  readonly unit: string;
  readonly met: boolean;
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** The result of one case. */
export interface CaseResult {
  readonly tables: readonly Table[];
  readonly goals: readonly Goal[];
  /** Cores that other processes kept busy meanwhile: the median of all rounds, if measured. */
  readonly busyOthers?: number;
}

/** A goal that is met by a measured value of `limit` or less. */
export function atMost(id: string, what: string, measured: number, limit: number, unit = 'x'): Goal {
  return { id, what, measured, limit, unit, direction: 'at most', met: measured <= limit };
}

export function atLeast(id: string, what: string, measured: number, limit: number, unit = 'x'): Goal {
  return { id, what, measured, limit, unit, direction: 'at least', met: measured >= limit };
}

/** Three significant digits; whole numbers from 100. */
function numberText(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : value.toFixed(size >= 10 ? 1 : 2);
}

/** Aligns the columns, numbers to the right. */
export function tableText({ title, columns, rows }: Table): string {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? numberText(cell) : cell)));
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const line = (row: readonly string[], isNumber: (at: number) => boolean): string =>
    row
      .map((cell, at) => (isNumber(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  const isNumberColumn = (at: number): boolean => rows.some((row) => typeof row[at] === 'number');
  return [
    '',
    title,
    line(columns, isNumberColumn),
    widths.map((width) => '-'.repeat(width)).join('  '),
    ...cells.map((row) => line(row, isNumberColumn)),
  ].join('\n');
}

/** All goals with their measured values. */
export function goalsText(goals: readonly Goal[]): string {
  return tableText({
    title: 'Goals',
    columns: ['', 'what', 'measured', 'goal', ''],
    rows: goals.map(({ id, what, measured, limit, direction, unit, met }) => [
      id,
      what,
      `${numberText(measured)} ${unit}`,
      `${direction} ${numberText(limit)} ${unit}`,
      met ? 'met' : 'MISSED',
    ]),
  });
}

/** The rounds of one request on several servers; ratios are relative to the first server. */
function roundsTable(title: string, measured: readonly Measured[], request: string): Table {
  const rows = measured.filter((entry) => entry.request === request);
  const reference = rows[0] === undefined ? Number.NaN : leastCpu(rows[0]);
  return {
    title,
    columns: ['server', 'CPU µs/request', 'ratio', 'spread', 'requests/s', 'p50 ms', 'p99 ms'],
    rows: rows.map((entry) => [
      entry.contestant,
      leastCpu(entry),
      leastCpu(entry) / reference,
      spreadOf(entry),
      mostPerSecond(entry),
      Math.min(...entry.p50Ms),
      Math.min(...entry.p99Ms),
    ]),
  };
}

/** How reliable the figures are: the load by other processes, and the differences between rounds. */
function noiseTable(measured: readonly Measured[]): Table {
  const spreads = measured.map(spreadOf);
  const others = measured.flatMap((entry) => entry.busyOthers);
  return {
    title: 'Noise',
    columns: ['', 'median', 'most'],
    rows: [
      ['CPU/request, largest round over smallest', median(spreads), Math.max(...spreads)],
      ['cores kept busy by other processes', median(others), Math.max(...others)],
    ],
  };
}

/** The result of rounds: a table of each request, those of the case, the noise and the goals. */
export function roundsResult(
  measured: readonly Measured[],
  titleOf: (request: string) => string,
  goals: readonly Goal[],
  more: readonly Table[] = [],
): CaseResult {
  const requests = [...new Set(measured.map(({ request }) => request))];
  const tables = requests.map((request) => roundsTable(titleOf(request), measured, request));
  const busyOthers = median(measured.flatMap((entry) => entry.busyOthers));
  return { tables: [...tables, ...more, noiseTable(measured)], goals, busyOthers };
}
