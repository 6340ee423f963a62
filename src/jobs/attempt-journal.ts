import { type FinishedAttempt, recordAttempts } from '../domain/access/webhooks/record-attempts.ts';
import type { JobContext } from './job-context.ts';

/** Writes down what became of attempts. */
export interface AttemptJournal {
  /** Resolves when the outcome is committed; rejects when it could not be. */
  record(finished: FinishedAttempt): Promise<void>;
  /** Drops what is not written yet; when it resolves, nothing is being written. */
  forget(): Promise<void>;
}

const MAX_TOGETHER = 200;
/** Another transaction may get in the way. */
const TRIES = 3;

interface Entry {
  readonly finished: FinishedAttempt;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Commits the outcomes that come while one commit is under way together in the next: a commit costs a sync. */
export function startAttemptJournal({ services, inUnit }: JobContext): AttemptJournal {
  const waiting: Entry[] = [];
  let writing: Promise<void> | undefined;

  async function write(entries: readonly Entry[], tries: number): Promise<void> {
    try {
      const disabled = await inUnit((em) =>
        recordAttempts(
          em,
          entries.map(({ finished }) => finished),
        ),
      );
      for (const endpoint of disabled) {
        services.log.warn({ endpoint }, 'a webhook endpoint was disabled: it has only failed for five days');
      }
      for (const { resolve } of entries) resolve();
    } catch (error) {
      if (tries > 1) return write(entries, tries - 1);
      for (const { reject } of entries) reject(error);
    }
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      // Outcomes of the same moment go together.
      await new Promise((resolve) => setImmediate(resolve));
      const entries = waiting.splice(0, MAX_TOGETHER);
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
