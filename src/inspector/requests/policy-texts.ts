import type { PolicyObservation, PolicyUnitTrace } from '../../sandbox/generated/schemas.ts';

const MOST_VALUES = 20;

/** What a condition observed, in words. */
export function observedText({ state, values, reason }: PolicyObservation): string {
  if (state !== 'present') return reason === undefined ? state : `${state} (${reason})`;
  const shown = (values ?? []).slice(0, MOST_VALUES).map((value) => JSON.stringify(value));
  const rest = (values ?? []).length - shown.length;
  return `observed ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** The outcome of a unit, in words: `denied by default`. */
export function outcomeText({ outcome }: Pick<PolicyUnitTrace, 'outcome'>): string {
  return String(outcome).replaceAll('_', ' ');
}
