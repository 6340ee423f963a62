import { expect, test } from 'vitest';
import { jobApart } from '../../../src/jobs/job-context.ts';

/** A job over these rows, each named after its chain, of which chain `slow` answers only when `slow` resolves. */
function follow(due: string[], everyMs: number) {
  const done: string[] = [];
  const slow = Promise.withResolvers<void>();
  const claimedWith: string[][] = [];
  const job = jobApart({
    name: 'follow',
    everyMs,
    batch: 2,
    subjectOf: (row: string) => row.split(' ')[0]!,
    async claim(busy, limit) {
      claimedWith.push([...busy]);
      const claimed = due.filter((row) => !busy.includes(row.split(' ')[0]!)).slice(0, limit);
      for (const row of claimed) due.splice(due.indexOf(row), 1);
      return claimed;
    },
    async work(rows) {
      if (rows[0]!.startsWith('slow')) await slow.promise;
      done.push(...rows);
      return false;
    },
  });
  return { job, done, slow, claimedWith, due };
}

const ignore = () => undefined;

test('a chain that hangs with more than one batch does not keep the others waiting', async () => {
  const { job, done, slow, due } = follow(['slow 1', 'slow 2', 'slow 3', 'well 1', 'well 2', 'well 3'], 5);
  expect(await job.run(ignore)).toBe(true);
  expect(done).toEqual(['well 1', 'well 2']);
  expect(await job.run(ignore)).toBe(true);
  expect(done).toEqual(['well 1', 'well 2', 'well 3']);
  expect(due).toEqual(['slow 3']);
  slow.resolve();
  while (await job.run(ignore));
  expect(done.slice(3)).toEqual(['slow 1', 'slow 2', 'slow 3']);
});

test('a batch ends with its work, without waiting out the pause', async () => {
  const { job, done } = follow(['well 1'], 3_600_000);
  expect(await job.run(ignore)).toBe(false);
  expect(done).toEqual(['well 1']);
});

test('a stop waits for what a batch has left behind', async () => {
  const { job, done, slow } = follow(['slow 1'], 1);
  await job.run(ignore);
  const stopped = job.stop!();
  slow.resolve();
  await stopped;
  expect(done).toEqual(['slow 1']);
});

test('what fails behind a batch fails the next one, once', async () => {
  const { job, slow } = follow(['slow 1'], 1);
  await job.run(ignore);
  slow.reject(new Error('the database is away'));
  await expect(job.run(ignore)).rejects.toThrow('the database is away');
  expect(await job.run(ignore)).toBe(false);
});
