import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createAdmission } from '../../../src/jobs/admission.ts';

/** Lets everything that is ready happen. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Work that runs until the test ends it. */
function startWorks(count: number, admission: ReturnType<typeof createAdmission>) {
  const begun: number[] = [];
  const works = Array.from({ length: count }, (_, number) => {
    const end = Promise.withResolvers<void>();
    const done = admission.enter(async () => {
      begun.push(number);
      await end.promise;
      return number;
    });
    return { end: end.resolve, fail: end.reject, done };
  });
  return { begun, works };
}

test('as much work runs as the limit allows, the rest follows in order of arrival', async () => {
  const { begun, works } = startWorks(4, createAdmission(2));
  await turn();
  expect(begun).toEqual([0, 1]);
  works[1]!.end();
  await expect(works[1]!.done).resolves.toBe(1);
  await turn();
  expect(begun).toEqual([0, 1, 2]);
});

test('work that fails makes room for the next', async () => {
  const { begun, works } = startWorks(2, createAdmission(1));
  await turn();
  works[0]!.fail(new Error('no'));
  await expect(works[0]!.done).rejects.toThrow('no');
  await turn();
  expect(begun).toEqual([0, 1]);
});

test('a higher limit starts waiting work, a lower one waits for running work', async () => {
  const admission = createAdmission(1);
  const { begun, works } = startWorks(6, admission);
  await turn();
  admission.limitTo(3);
  await turn();
  expect(begun).toEqual([0, 1, 2]);
  admission.limitTo(1);
  works[0]!.end();
  works[1]!.end();
  await turn();
  expect(begun).toEqual([0, 1, 2]);
  works[2]!.end();
  await turn();
  expect(begun).toEqual([0, 1, 2, 3]);
});

test('for any limits and order of completion: never too many, and all complete', async () => {
  const step = fc.oneof(
    fc.record({ limit: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ end: fc.nat({ max: 9 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      let limit = 2;
      const admission = createAdmission(limit);
      const { begun, works } = startWorks(10, admission);
      const ended = new Set<number>();
      await turn();
      for (const each of steps) {
        const inside = begun.filter((number) => !ended.has(number));
        if ('limit' in each) {
          limit = each.limit;
          admission.limitTo(limit);
        } else if (inside.length > 0) {
          const number = inside[each.end % inside.length]!;
          ended.add(number);
          works[number]!.end();
        }
        const before = inside.length;
        await turn();
        const now = begun.filter((number) => !ended.has(number)).length;
        expect(now).toBeLessThanOrEqual(Math.max(limit, before));
        expect(now).toBeGreaterThanOrEqual(Math.min(limit, 10 - ended.size, before));
      }
      for (const work of works) work.end();
      await expect(Promise.all(works.map(({ done }) => done))).resolves.toHaveLength(10);
      expect(begun).toEqual(begun.toSorted((a, b) => a - b));
    }),
    { numRuns: 100 },
  );
});
