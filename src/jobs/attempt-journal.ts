import { type FinishedAttempt, recordAttempts } from '../domain/access/webhooks/webhook-retries.ts';
import type { JobContext } from './job-context.ts';

/** Stores the outcomes of delivery attempts. */
export interface AttemptJournal {
  /** Resolves when the outcome is committed. Rejects when the commit failed. */
  record(finished: FinishedAttempt): Promise<void>;
  /** Drops the outcomes that are not stored yet. When it resolves, no write is in progress. */
  forget(): Promise<void>;
}

const MAX_PER_WRITE = 200;
/** How many times a write is tried, because its transaction may conflict with another one. */
const TRIES = 3;

interface Entry {
  readonly finished: FinishedAttempt;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Starts a journal. Outcomes that arrive during a commit are committed together in the next one, because each commit
 * costs a disk sync.
 */
export function startAttemptJournal({ services, inUnit }: JobContext): AttemptJournal {
  const waiting: Entry[] = [];
  let writing: Promise<void> | undefined;

  async function write(entries: readonly Entry[], tries: number): Promise<void> {
    try {
      const disabled = await inUnit((em, notes) =>
        recordAttempts(
          { em, notes },
          entries.map(({ finished }) => finished),
        ),
      );
      for (const endpoint of disabled) {
        services.log.warn({ endpoint }, 'webhook endpoint disabled after five days of failures');
      }
      for (const { resolve } of entries) resolve();
    } catch (error) {
      if (tries > 1) return write(entries, tries - 1);
      for (const { reject } of entries) reject(error);
    }
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      // Waits for other outcomes in the same turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const entries = waiting.splice(0, MAX_PER_WRITE);
      if (entries.length > 0) await write(entries, TRIES);
    }
    writing = undefined;
  }

  return {
    record: (finished) =>
      new Promise((resolve, reject) => {
        waiting.push({ finished, resolve, reject });
        writing ??= writeAll();
      }),
    async forget() {
      for (const { resolve } of waiting.splice(0)) resolve();
      await writing;
    },
  };
}
