import { appendFileSync } from 'node:fs';

/*
 * What the figures of docs/figures need of a test: how much to do, and what was measured. `npm run figures` sets both
 * variables.
 */

export const isLong = process.env.TEST_LONG === '1';

/** How much a test does: a few in `npm test`, many with `TEST_LONG=1`, or what FIGURE_SIZE says. */
export function figureSize({ short, long }: { readonly short: number; readonly long: number }): number {
  const { FIGURE_SIZE: wanted } = process.env;
  if (wanted !== undefined) return Number(wanted);
  return isLong ? long : short;
}

/** What a run has measured; kept only if `npm run figures` runs it. */
export function noteFigure(measured: Readonly<Record<string, number | string>>): void {
  const { FIGURE_FILE: file } = process.env;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(measured)}\n`);
}
