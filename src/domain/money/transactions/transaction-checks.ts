import type { TransactionRow } from './transaction-row.ts';
import { isTerminal, type TransactionStatus } from './transaction-state.ts';

// CHOICE: how often a chain is asked: soon while blocks are about to come, then ever less often.
const FIRST_CHECK_MS = 1000;
const RAREST_CHECK_MS = 60_000;
const PART_OF_AGE = 10;

/** CHOICE: a transaction waits for long when no block took it within this time; EVM callers are told once. */
export const SLOW_AFTER_MS = 5 * 60_000;

/**
 * CHOICE: one that the chain has dropped and refuses to take again is given up after this time. What a chain still
 * holds is never given up: it may come into a block at any time.
 */
export const GIVEN_UP_AFTER_MS = 24 * 60 * 60_000;

/** When the chain is asked next, Unix ms; null when nothing can change any more. */
export function nextCheckAt(
  { created_at_ms: createdAtMs }: Pick<TransactionRow, 'created_at_ms'>,
  { status, isSettled }: { readonly status: TransactionStatus; readonly isSettled: boolean },
  nowMs: number,
): number | null {
  if (isSettled || isTerminal(status)) return null;
  const ageMs = Math.max(0, nowMs - createdAtMs);
  return nowMs + Math.min(RAREST_CHECK_MS, Math.max(FIRST_CHECK_MS, Math.floor(ageMs / PART_OF_AGE)));
}
