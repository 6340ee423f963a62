/** Unix milliseconds as the time of day, UTC: `00:00:02.500`. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** Unix milliseconds as date and time, UTC: `2026-01-01 00:00:02.500`. */
export function dateAndTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 23).replace('T', ' ');
}

/** A duration in milliseconds: `4.2 ms`, `3 s`, `5 min`, `2 h`, `3 d`; each unit from two of it on. */
export function durationText(ms: number): string {
  const units: readonly [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ];
  const [unit, size] = units.find(([, size]) => Math.abs(ms) >= 2 * size) ?? ['ms', 1];
  const value = ms / size;
  return `${Math.abs(value) >= 10 ? Math.round(value) : Math.round(value * 10) / 10} ${unit}`;
}
