import type { SandboxSnapshot } from '../../sandbox/generated/schemas.ts';
import { dateAndTime } from '../parts/time-text.ts';

/** A number of bytes: `512 B`, `4.5 MB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  return `${Math.round((bytes / 1000 ** power) * 10) / 10} ${units[power]}`;
}

/** When a snapshot was saved, and by what version. */
export function savedText({ saved_at_ms: savedMs, version }: SandboxSnapshot): string {
  if (savedMs === null) return 'this file is not a snapshot, or is torn';
  return `${dateAndTime(savedMs)} UTC${version === null ? '' : `, version ${version}`}`;
}

/** The name of a snapshot for a file: `Funded (1).snapshot` becomes `funded-1`. */
export function nameOfFile(file: string): string {
  const name = file
    .replace(/\.snapshot$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .replace(/(?<!-)-+$/, '')
    .slice(0, 64);
  return name === '' ? 'uploaded' : name;
}
