import type { Clock } from '../../ports/clock.ts';

/**
 * CHOICE: denials of callers that no credential identifies: 50 a second in each process. Others are counted, and the
 * next record has their number. Without a bound, anyone could fill the log. Callers that are known are bounded by
 * their rate limit.
 */
const PER_SECOND = 50;

/** How many denials of unknown callers are recorded. */
export interface DenialBudget {
  /** Whether a denial is recorded; otherwise it is counted. */
  take(): boolean;
  /**
   * Writes a record with the number of those that were left out before it. They are counted again if it fails.
   *
   * @param omitted undefined for none.
   */
  write(record: (omitted: number | undefined) => Promise<void>): Promise<void>;
}

/** @param machine the clock of the machine. */
export function createDenialBudget(machine: Clock): DenialBudget {
  let [second, used, omitted] = [0, 0, 0];
  return {
    take() {
      const now = Math.floor(machine.now() / 1000);
      if (now !== second) [second, used] = [now, 0];
      used += 1;
      if (used > PER_SECOND) omitted += 1;
      return used <= PER_SECOND;
    },
    async write(record) {
      const before = omitted;
      omitted = 0;
      try {
        await record(before === 0 ? undefined : before);
      } catch (failure) {
        omitted += before;
        throw failure;
      }
    },
  };
}
