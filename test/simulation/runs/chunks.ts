import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { sumOf, type Tally } from './tally.ts';

/*
 * A long run writes what it has done as lines of JSON, a line for each chunk of seeds, so that it can be stopped at any
 * time, continued by another version, and added up.
 */

/** What a chunk of seeds came to, and where. */
export interface Chunk extends Tally {
  readonly from: number;
  readonly steps: number;
  /** ISO 8601. */
  readonly date: string;
  readonly commit: string;
  /** Whether the working tree was that of the commit. */
  readonly isClean: boolean;
  readonly machine: string;
  readonly seconds: number;
}

/** Seeds that one commit ran. */
interface Range {
  readonly from: number;
  to: number;
  readonly commit: string;
  readonly isClean: boolean;
  readonly firstDate: string;
  lastDate: string;
  readonly machine: string;
}

/** The chunks of a file, in the order of their seeds. */
export function readChunks(file: string): readonly Chunk[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Chunk).sort((one, other) => one.from - other.from);
}

export function addChunk(file: string, chunk: Chunk): void {
  appendFileSync(file, `${JSON.stringify(chunk)}\n`);
}

/** The seed after those of the chunks. */
export function seedAfter(chunks: readonly Chunk[], first: number): number {
  return chunks.reduce((next, { from, size }) => Math.max(next, from + size), first);
}

/**
 * The sum of chunks, and who ran which seeds.
 *
 * @throws when a seed is in two of them, or when they took different steps.
 */
export function sumOfChunks(chunks: readonly Chunk[]) {
  const ranges: Range[] = [];
  let seconds = 0;
  for (const { from, size, steps, ...chunk } of chunks) {
    const last = ranges.at(-1);
    if (last !== undefined && from <= last.to) throw new Error(`the seed ${from} is in two chunks`);
    if (steps !== chunks[0]!.steps) throw new Error(`the seeds from ${from} on took ${steps} steps`);
    seconds += chunk.seconds;
    const { commit, isClean, machine, date } = chunk;
    const isSame =
      last?.commit === commit && last.isClean === isClean && last.machine === machine && last.to === from - 1;
    if (isSame) {
      last.to = from + size - 1;
      last.lastDate = date;
    } else {
      ranges.push({ from, to: from + size - 1, commit, isClean, firstDate: date, lastDate: date, machine });
    }
  }
  return { ...sumOf(chunks), steps: chunks[0]?.steps ?? 0, seconds, seeds: ranges.map(textOf).join('; ') };
}

function textOf({ from, to, commit, isClean, firstDate, lastDate, machine }: Range): string {
  const days = [...new Set([firstDate, lastDate].map((date) => date.slice(0, 10)))].join(' to ');
  return `${from} to ${to} at ${commit}${isClean ? '' : ' with changes'}, ${days}, ${machine}`;
}
