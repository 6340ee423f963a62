import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/*
 * What the figures of docs/figures need of a test: how much to do, and what was measured. `npm run figures` sets
 * the variables.
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

/** A long run that an interruption does not end: a later run of the same figure, size and commit goes on from its state. */
export interface Progress<State> {
  readonly state: State;
  save(state: State): void;
}

/** What a file of progress contains. */
export interface KeptProgress<State = unknown> {
  /** How long the runs took that led to the state. */
  readonly seconds: number;
  readonly state: State;
}

export function readProgress<State>(file: string): KeptProgress<State> | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptProgress<State>) : undefined;
}

/** @param begin the state without an earlier run. */
export function figureProgress<State>(begin: State): Progress<State> {
  const { FIGURE_PROGRESS: file } = process.env;
  if (file === undefined) return { state: begin, save: () => undefined };
  const { seconds, state } = readProgress<State>(file) ?? { seconds: 0, state: begin };
  const beganMs = performance.now();
  return {
    state,
    save(next) {
      const kept = { seconds: Math.round(seconds + (performance.now() - beganMs) / 1000), state: next };
      mkdirSync(dirname(file), { recursive: true });
      // Renamed, so that an interruption leaves the earlier state or this one.
      writeFileSync(`${file}.new`, JSON.stringify(kept));
      renameSync(`${file}.new`, file);
    },
  };
}
