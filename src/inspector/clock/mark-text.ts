import type { SandboxUpcomingEntry } from '../../sandbox/generated/schemas.ts';
import { dateAndTime, durationText } from '../parts/time-text.ts';

/** What becomes due, and when: `intent expires in 3 d, 2026-01-04 00:00:00.000 UTC`. */
export function markText({ kind, at_ms: atMs }: SandboxUpcomingEntry, nowMs: number): string {
  return `${kind.replaceAll('_', ' ')} in ${durationText(atMs - nowMs)}, ${dateAndTime(atMs)} UTC`;
}
