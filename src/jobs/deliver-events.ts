import { claimEndpoints, isAnyEndpointWaiting } from '../domain/access/webhooks/claim-endpoints.ts';
import { fanOutEvents } from '../domain/access/webhooks/fan-out-events.ts';
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
/** CHOICE: how long an endpoint keeps its place among them while others wait for one. */
const TURN_MS = 5_000;
/**
 * How long this process leaves an endpoint alone after it failed to work on it, ms of the machine's time: where sending
 * goes well and recording does not, a full disk for instance, the same events would be sent without end.
 */
const REST_MS = 5_000;

/**
 * Gives recorded events to the endpoints that ask for them, and sends to each endpoint what is due to it, beside the
 * others, so that a slow one delays nobody. Nothing of it is in memory alone: whatever the process dies in, another
 * one, or itself when it is started again, goes on from the database, and at most repeats what was under way.
 */
export function deliverEvents(context: Omit<WorkerOptions, 'journal'>): Job {
  const { services, inUnit, owner } = context;
  const options = { ...context, journal: startAttemptJournal(context) };
  const workers = new Map<string, EndpointWorker>();
  const resting = new Map<string, NodeJS.Timeout>();
  let isStopping = false;

  function rest(id: string): void {
    resting.set(id, setTimeout(() => resting.delete(id), REST_MS).unref());
  }

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
        rest(id);
        services.log.error({ err, endpoint: id }, 'sending to a webhook endpoint failed; it is tried again');
      });
  }

  return {
    name: DELIVER_EVENTS,
    everyMs: EVERY_MS,
    async run(again) {
      const nowMs = services.clock.now();
      const { eventCount, endpointIds } = await inUnit((em) => fanOutEvents(em, nowMs, EVENTS_AT_ONCE));
      // Whatever this run was woken for, any of the endpoints may have been changed.
      for (const worker of workers.values()) worker.doubt();
      // Without new events it is retries, replays or tests that may be due, to any of them.
      const poked = eventCount === 0 ? workers.keys() : endpointIds;
      for (const id of poked) workers.get(id)?.poke();
      const known = [...workers.keys(), ...resting.keys()];
      const room = MAX_ENDPOINTS - workers.size;
      if (isStopping) return false;
      if (room > 0) {
        const claimed = await inUnit((em) => claimEndpoints(em, { owner, nowMs }, known, room));
        for (const id of claimed) start(id, again);
      } else if (await inUnit((em) => isAnyEndpointWaiting(em, { owner, nowMs }, known))) {
        for (const { startedAtMs, stop } of workers.values()) if (startedAtMs <= nowMs - TURN_MS) stop();
      }
      return eventCount === EVENTS_AT_ONCE;
    },
    async finish() {
      const ends = await Promise.allSettled([...workers.values()].map(({ done }) => done));
      return ends.length > 0;
    },
    async stop() {
      isStopping = true;
      for (const worker of workers.values()) worker.stop();
      await Promise.allSettled([...workers.values()].map(({ done }) => done));
    },
    async forget() {
      for (const worker of workers.values()) worker.forget();
      workers.clear();
      for (const timer of resting.values()) clearTimeout(timer);
      resting.clear();
      await options.journal.forget();
    },
  };
}
