import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** Where the results are kept. */
export const folder = join(root, 'docs', 'figures');

export const resultFile = (name: string): string => join(folder, `${name}.json`);

/** What one run came to. Only `main.ts` writes it, and only after the run. */
export interface Result {
  readonly figure: string;
  /** When the run began, ISO 8601. */
  readonly date: string;
  readonly commit: string;
  /** Whether the working tree was that of the commit. */
  readonly isClean: boolean;
  readonly machine: {
    readonly cores: number;
    readonly cpu: string;
    readonly memoryMb: number;
    readonly node: string;
    /** How many processes wanted to run, on average of a minute before the run and of its end. */
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly command: string;
  /** How many of the unit of the figure; absent where it has none. */
  readonly size?: number;
  readonly outcome: 'passed' | 'failed';
  readonly seconds: number;
  readonly tests?: { readonly passed: number; readonly failed: number; readonly skipped: number };
  /** What the run noted. */
  readonly measured: readonly Readonly<Record<string, unknown>>[];
  /** First lines of what failed. */
  readonly failures: readonly string[];
}

export function readResult(name: string): Result | undefined {
  const file = resultFile(name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Result) : undefined;
}
