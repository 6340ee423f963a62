import { expect, test } from 'vitest';
import type { FinishedAttempt } from '../../../src/domain/access/webhooks/webhook-retries.ts';
import { startAttemptJournal } from '../../../src/jobs/attempt-journal.ts';
import { services } from '../../integration/contexts.ts';

test('`forget` drops outcomes that wait, and waits for those being written', async () => {
  const done: string[] = [];
  const isWriting = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const journal = startAttemptJournal({
    services,
    async inUnit() {
      done.push('write begins');
      isWriting.resolve();
      await mayEnd.promise;
      done.push('write ends');
      // No endpoint was disabled.
      return [] as never;
    },
  });
  const finished = {} as FinishedAttempt;
  const first = journal.record(finished);
  await isWriting.promise;
  const second = journal.record(finished);
  const forgotten = journal.forget().then(() => done.push('forgotten'));
  mayEnd.resolve();
  await Promise.all([first, second, forgotten]);
  expect(done).toEqual(['write begins', 'write ends', 'forgotten']);
});
