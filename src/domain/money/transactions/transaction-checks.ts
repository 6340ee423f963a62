import type { TransactionRow } from './transaction-row.ts';
import { isTerminal, type TransactionStatus } from './transaction-state.ts';

// CHOICE: how often a chain is polled: frequently at first, then with growing intervals.
const FIRST_CHECK_MS = 1000;
const RAREST_CHECK_MS = 60_000;
const PART_OF_AGE = 10;

/**
 * CHOICE: a transaction counts as slow when it is not included within this time; one event is recorded on EVM chains.
 */
export const SLOW_AFTER_MS = 5 * 60_000;

/**
 * CHOICE: a transaction that the chain has dropped and refuses is given up after this time. One that the chain still
 * holds is never given up, because it may be included at any time.
 */
export const GIVEN_UP_AFTER_MS = 24 * 60 * 60_000;

/** When the chain is polled next, Unix ms; null when the state is final. */
export function nextCheckAt(
  { created_at_ms: createdAtMs }: Pick<TransactionRow, 'created_at_ms'>,
  { status, isSettled }: { readonly status: TransactionStatus; readonly isSettled: boolean },
  nowMs: number,
): number | null {
  if (isSettled || isTerminal(status)) return null;
  const ageMs = Math.max(0, nowMs - createdAtMs);
  return nowMs + Math.min(RAREST_CHECK_MS, Math.max(FIRST_CHECK_MS, Math.floor(ageMs / PART_OF_AGE)));
}
