/** The process that claims work, and the current time. */
export interface Claimant {
  /** Identifies it among those that share the database. */
  readonly owner: string;
  readonly nowMs: number;
}

/** The longest time by which a claim postpones the next check of a row. */
const LONGEST_LEASE_MS = 60_000;

/**
 * The times of the next check that a claim may have set. Rows that a process has claimed once and that are due later
 * need no release.
 */
export function claimedUntil({ nowMs }: Claimant): { readonly $gt: number; readonly $lte: number } {
  // The clocks of processes may differ by as much again.
  return { $gt: nowMs, $lte: nowMs + 2 * LONGEST_LEASE_MS };
}
