import { type Dimension, dimensions, type Measured, type Row } from './measure.ts';

/** A documented result that the tests do not cover, and the reason. */
export interface Gap {
  readonly name: string;
  readonly reason: string;
}

/** Parses lines such as `createWallet 500 internal_error  # the reason`. */
export function parseGaps(text: string): Gap[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name = '', reason = ''] = line.split('#', 2);
      return { name: name.trim(), reason: reason.trim() };
    });
}

/** Returns the text of the list without the lines of these names. Comments and reasons of other lines are kept. */
export function withoutGaps(text: string, names: readonly string[]): string {
  const closed = new Set(names);
  return text
    .split('\n')
    .filter((line) => !parseGaps(line).some(({ name }) => closed.has(name)))
    .join('\n');
}

/** How much of a dimension is covered. */
export interface Figure {
  readonly covered: number;
  readonly total: number;
  /** Rounded down to one decimal place, so that 100 means everything. */
  readonly percent: number;
}

/** The minimum coverage of a dimension, or of everything. */
export interface Threshold {
  readonly dimension: Dimension | 'all';
  readonly percent: number;
}

export interface Verdict {
  /** The scope of the figures. */
  readonly scope: Scope;
  /** The reasons why the coverage is not sufficient. Empty if it is sufficient. */
  readonly faults: readonly string[];
  /** Combinations that are neither covered nor listed in the baseline. */
  readonly unlisted: readonly string[];
  /**
   * Combinations in the baseline that are now covered, or that the API document does not contain. They must be
   * deleted from the baseline.
   */
  readonly closed: readonly string[];
}

/** The counted part of the API document: only the operations that were called, or everything. */
export type Scope = 'called' | 'contract';

/** The dimensions that belong to operations. They are counted for the operations that were called. */
export const perOperation: readonly Dimension[] = ['statuses', 'errors', 'requests', 'responses'];

/**
 * Counts what is covered of each dimension. For the scope `called`, the dimensions of operations, and `all`, contain
 * only operations that were called.
 *
 * CHOICE: a client uses a few operations of the API. If the errors of all operations counted, they would hide which
 * errors of the used operations the tests have never met.
 */
export function figuresOf(
  { rows }: Pick<Measured, 'rows'>,
  scope: Scope = 'contract',
): Record<Dimension | 'all', Figure> {
  const called = calledIn({ rows });
  const isCalled = ({ dimension, operation }: Row): boolean =>
    perOperation.includes(dimension) && called.has(operation!);
  const names = Object.keys(dimensions) as Dimension[];
  const figures = names.map((name) => {
    const own = rows.filter(({ dimension }) => dimension === name);
    return [name, figureOf(scope === 'called' && perOperation.includes(name) ? own.filter(isCalled) : own)];
  });
  return { ...Object.fromEntries(figures), all: figureOf(scope === 'called' ? rows.filter(isCalled) : rows) };
}

/** Returns the operations that were called, each with the number of its calls. */
export function calledIn({ rows }: Pick<Measured, 'rows'>): ReadonlyMap<string, number> {
  return new Map(
    rows
      .filter(({ dimension, count }) => dimension === 'operations' && count > 0)
      .map(({ operation, count }) => [operation!, count]),
  );
}

function figureOf(rows: readonly Row[]): Figure {
  const total = rows.length;
  const covered = rows.filter(({ count }) => count > 0).length;
  return { covered, total, percent: total === 0 ? 100 : Math.floor((covered / total) * 1000) / 10 };
}

/** Compares the measured coverage with thresholds and with a baseline, which is the text of a list of gaps. */
export function judgeCoverage(
  measured: Pick<Measured, 'rows'>,
  {
    thresholds,
    baseline,
    scope = 'contract',
  }: {
    readonly thresholds: readonly Threshold[];
    readonly baseline: string | undefined;
    readonly scope?: Scope;
  },
): Verdict {
  const figures = figuresOf(measured, scope);
  const low = thresholds.filter(({ dimension, percent }) => figures[dimension].percent < percent);
  const { unlisted, closed } = compareWithBaseline(measured, baseline);
  return {
    scope,
    faults: [
      ...low.map(
        ({ dimension, percent }) =>
          `${titleOf(dimension)}: expected at least ${percent} %, got ${figures[dimension].percent} %`,
      ),
      ...(unlisted.length > 0 ? [`${unlisted.length} not covered and not in the baseline`] : []),
      ...(closed.length > 0 ? [`${closed.length} in the baseline and covered; delete them from it`] : []),
    ],
    unlisted,
    closed,
  };
}

export function titleOf(dimension: Dimension | 'all'): string {
  return dimension === 'all' ? 'all together' : dimensions[dimension];
}

function compareWithBaseline(
  { rows }: Pick<Measured, 'rows'>,
  baseline: string | undefined,
): Pick<Verdict, 'unlisted' | 'closed'> {
  if (baseline === undefined) return { unlisted: [], closed: [] };
  const listed = new Set(parseGaps(baseline).map(({ name }) => name));
  const open = new Set(rows.filter(({ count }) => count === 0).map(({ name }) => name));
  return {
    unlisted: [...open].filter((name) => !listed.has(name)),
    closed: [...listed].filter((name) => !open.has(name)),
  };
}

/** Returns the text of a first baseline, which lists everything that is not covered. */
export function baselineOf({ rows }: Pick<Measured, 'rows'>): string {
  const open = rows.filter(({ count }) => count === 0).map(({ name }) => name);
  return ['# Not covered, as `name  # reason`. The list may only shrink.', ...open, ''].join('\n');
}
