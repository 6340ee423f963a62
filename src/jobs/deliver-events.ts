import {
  claimEndpoints,
  fanOutEvents,
  isAnyEndpointWaiting,
} from '../domain/access/webhooks/fan-out-events.ts';
import type { DelayDelivery } from '../ports/requests.ts';
import { startAttemptJournal } from './attempt-journal.ts';
import { createDeliverySlots } from './delivery-slots.ts';
import { type EndpointWorker, startEndpointWorker, type WorkerOptions } from './endpoint-worker.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { fewAtOnce } from './job-context.ts';
import type { Job } from './runner.ts';

/** The name of the job, for `wake`. */
export const DELIVER_EVENTS = 'deliver-events';

/** The pause between batches while `find-due-work` finds events or retries that are due. */
const EVERY_MS = 1_000;
const EVENTS_AT_ONCE = 200;
/**
 * The maximum number of concurrent units of work. Hundreds of workers may need one at the same moment, for example to
 * release their endpoints when the process stops. They wait here, because a wait for a connection of the pool fails
 * after a time limit.
 */
const UNITS_AT_ONCE = 4;
/** The maximum number of endpoints that one process serves at a time. */
const MAX_ENDPOINTS = 500;
/** CHOICE: how long an endpoint keeps its place while other endpoints wait. */
const TURN_MS = 5_000;
/**
 * How long this process skips an endpoint after an internal failure, in ms of real time. If deliveries succeed but
 * recording them fails, for example on a full disk, the same events would otherwise be sent again without a pause.
 */
const REST_MS = 5_000;

/**
 * Creates the job that assigns recorded events to the endpoints that subscribe to them, and delivers the due events.
 * Endpoints are served concurrently within common limits (`createDeliverySlots`), so a slow endpoint does not delay the
 * others. All state is in the database. After a crash, another process or a restarted process continues, and repeats at
 * most the requests that were in progress.
 */
export function deliverEvents(
  given: Omit<WorkerOptions, 'journal' | 'slots'> & { readonly delay?: DelayDelivery | undefined },
): Job {
  const { services, delay } = given;
  const inUnit = fewAtOnce(given.inUnit, UNITS_AT_ONCE);
  const context = { ...given, inUnit };
  const owner = services.processId;
  const options = { ...context, journal: startAttemptJournal(context), slots: createDeliverySlots() };
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
        services.log.error({ err, endpoint: id }, 'failed to send to a webhook endpoint; will retry');
      });
  }

  /** Ends the workers after their requests in progress. */
  async function finishWorkers(): Promise<void> {
    for (const worker of workers.values()) worker.stop();
    await Promise.allSettled([...workers.values()].map(({ done }) => done));
  }

  return {
    name: DELIVER_EVENTS,
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    // While workers run, the job is not idle, because every run makes them read their endpoints again.
    isIdle: () => workers.size === 0,
    async run(again) {
      const nowMs = services.clock.now();
      const { eventCount, endpointIds } = await inUnit((em) =>
        fanOutEvents(em, nowMs, EVENTS_AT_ONCE, delay),
      );
      // Any endpoint may have changed, whatever triggered this run.
      for (const worker of workers.values()) worker.invalidate();
      // Without new events, any endpoint may still have retries, replays or tests that are due.
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
      await finishWorkers();
    },
    rest: finishWorkers,
    async forget() {
      for (const worker of workers.values()) worker.forget();
      workers.clear();
      for (const timer of resting.values()) clearTimeout(timer);
      resting.clear();
      await options.journal.forget();
    },
  };
}
