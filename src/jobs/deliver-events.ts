import { claimEndpoints } from '../domain/webhooks/claim-endpoints.ts';
import { fanOutEvents } from '../domain/webhooks/fan-out-events.ts';
import { startAttemptJournal } from './attempt-journal.ts';
import { type EndpointWorker, startEndpointWorker, type WorkerOptions } from './endpoint-worker.ts';
import type { Job } from './runner.ts';

/** For whoever leaves something to deliver. */
export const DELIVER_EVENTS = 'deliver-events';

/** Retries and what other processes left are found this late. */
const EVERY_MS = 1_000;
const EVENTS_AT_ONCE = 200;
/** Endpoints that one process sends to at a time. */
const MAX_ENDPOINTS = 500;

/**
 * Gives recorded events to the endpoints that ask for them, and sends to each endpoint what is due to it, beside the
 * others, so that a slow one delays nobody. Nothing of it is in memory alone: whatever the process dies in, another
 * one, or itself when it is started again, goes on from the database, and at most repeats what was under way.
 */
export function deliverEvents(context: Omit<WorkerOptions, 'journal'>): Job {
  const { services, inUnit, owner } = context;
  const options = { ...context, journal: startAttemptJournal(context) };
  const workers = new Map<string, EndpointWorker>();
  let isStopping = false;

  function start(id: string, again: () => void): void {
    const worker = startEndpointWorker(id, options);
    workers.set(id, worker);
    const end = (): void => {
      if (workers.get(id) === worker) workers.delete(id);
    };
    worker.done
      .then((isPoked) => {
        end();
        if (isPoked && !isStopping) again();
      })
      .catch((err: unknown) => {
        end();
        services.log.error({ err, endpoint: id }, 'sending to a webhook endpoint failed; it is tried again');
      });
  }

  return {
    name: DELIVER_EVENTS,
    everyMs: EVERY_MS,
    async run(again) {
      const nowMs = services.clock.now();
      const { eventCount, endpointIds } = await inUnit((em) => fanOutEvents(em, nowMs, EVENTS_AT_ONCE));
      // Without new events it is retries, replays or tests that may be due, at any of them.
      const poked = eventCount === 0 ? workers.keys() : endpointIds;
      for (const id of poked) workers.get(id)?.poke();
      const room = MAX_ENDPOINTS - workers.size;
      if (room > 0 && !isStopping) {
        const known = [...workers.keys()];
        const claimed = await inUnit((em) => claimEndpoints(em, { owner, nowMs }, known, room));
        for (const id of claimed) start(id, again);
      }
      return eventCount === EVENTS_AT_ONCE;
    },
    async finish() {
      const ends = await Promise.allSettled([...workers.values()].map(({ done }) => done));
      // One that failed will fail again at once; waiting for it would never end.
      return ends.some(({ status }) => status === 'fulfilled');
    },
    async stop() {
      isStopping = true;
      for (const worker of workers.values()) worker.stop();
      await Promise.allSettled([...workers.values()].map(({ done }) => done));
    },
    forget() {
      for (const worker of workers.values()) worker.forget();
      workers.clear();
    },
  };
}
