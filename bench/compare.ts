import { readFileSync } from 'node:fs';
import { type Goal, type Table, tableText } from './report.ts';

/** CHOICE: a smaller change of a ratio is noise of a busy machine. */
const WORSE = 1.25;

/** The goals in a file that an earlier run wrote. */
export function readGoals(file: string): Goal[] {
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    cases: Readonly<Record<string, { readonly goals: readonly Goal[] }>>;
  };
  return Object.values(cases).flatMap(({ goals }) => goals);
}

/** The measured values of goals, before and now. `worse`: the ratios that are worse by more than a quarter. */
export function compareGoals(
  before: readonly Goal[],
  now: readonly Goal[],
): { readonly table: Table; readonly worse: readonly string[] } {
  const rows: (readonly (string | number)[])[] = [];
  const worse: string[] = [];
  for (const { what, measured, unit, direction } of now) {
    const known = before.find((goal) => goal.what === what && goal.unit === unit);
    if (known === undefined) continue;
    // Above 1 means worse.
    const change = direction === 'at most' ? measured / known.measured : known.measured / measured;
    // Figures in other units depend on what else the machine does.
    const isWorse = unit === 'x' && change > WORSE;
    if (isWorse) worse.push(what);
    rows.push([what, known.measured, measured, unit, change, isWorse ? 'WORSE' : '']);
  }
  return {
    table: {
      title: 'Compared with the earlier run (change above 1: worse)',
      columns: ['what', 'before', 'now', 'unit', 'change', ''],
      rows,
    },
    worse,
  };
}

export function printComparison(before: readonly Goal[], now: readonly Goal[]): void {
  const { table, worse } = compareGoals(before, now);
  console.log(tableText(table));
  for (const what of worse) console.error(`WARNING: worse by more than a quarter: ${what}`);
}
