import { expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { watchDepartures } from '../../../src/compose/cells/departures.ts';
import type { SeenMove } from '../../../src/domain/base/processes/server-processes.ts';

/** The departures of a process whose database accepts no heartbeat, and whether its jobs rest. */
function withoutDatabase() {
  let resting = 0;
  const departures = watchDepartures({ log: silentLog, cell: 'eu' });
  departures.connect({
    alive: {
      beat: () => Promise.reject(new Error('away')),
      confirm: () => Promise.reject(new Error('away')),
      isCertain: () => true,
    },
    jobs: {
      async whileResting(work) {
        resting += 1;
        try {
          return await work();
        } finally {
          resting -= 1;
        }
      },
    },
    flush: async () => undefined,
  });
  return { departures, resting: () => resting };
}

const move = (state: SeenMove['state']): SeenMove => ({ number: 7, moveId: '7-a', appId: 'acme', state });

test.each([
  ['while a move goes on', []],
  ['after a move, while the database is unavailable', ['taken']],
] as const)('%s, a stop lets the jobs end, and the app stays refused', async (_, states) => {
  const { departures, resting } = withoutDatabase();
  departures.watch.note([move('draining')]);
  await expect.poll(() => departures.watch.drained).toBe(7);
  departures.watch.note(states.map(move));
  await expect.poll(() => departures.watch.drained).toBe(states.length === 0 ? 7 : 0);
  expect(resting()).toBe(1);
  departures.stop();
  await expect.poll(resting).toBe(0);
  expect(await departures.isLeaving('acme')).toBe(true);
});
