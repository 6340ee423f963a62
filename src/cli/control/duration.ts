import { invalidOption } from '../sandbox-options.ts';

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * A duration in milliseconds. A number without a unit is in seconds.
 *
 * @throws ConfigError
 */
export function readDurationMs(option: string, text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(text) ?? [];
  if (digits === undefined) {
    throw invalidOption(`${option}: expected a duration such as 500ms, 5s or 2m, got \`${text}\``);
  }
  return Number(digits) * unitsMs[unit]!;
}
