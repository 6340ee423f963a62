import {
  attemptDelivery,
  type DueDelivery,
  type Lane,
  readDueDeliveries,
} from '../domain/access/webhooks/due-deliveries.ts';
import type { FinishedAttempt } from '../domain/access/webhooks/webhook-retries.ts';
import { MAX_ATTEMPTS } from '../domain/access/webhooks/webhook-retries.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import { type ClaimedEndpoint, claimedEndpoint } from './claimed-endpoint.ts';
import type { DeliverySlots, EndpointSlots } from './delivery-slots.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { JobContext } from './job-context.ts';

/*
 * The states of a worker, from the claim of its endpoint to its release:
 *
 *   start ──▶ LOOKING ◀──▶ SENDING ──▶ RELEASING ──▶ done
 *                │            │            ▲
 *                └──────────▶ ENDING ──────┘
 *
 * LOOKING    reads the endpoint and its due deliveries.
 *              some are due ─▶ SENDING            none are due ─▶ RELEASING
 *              the endpoint is disabled, deleted or claimed by another process ─▶ ENDING
 * SENDING    runs one lane per resource: attempt a delivery, commit its outcome, attempt the next. An attempt waits
 *            for a slot among the requests of the process, then for the current state of the endpoint.
 *              fewer lanes than the maximum, and more may be due ─▶ LOOKING, while the lanes continue
 *              every lane has ended, nothing more is due ─▶ RELEASING
 *              `stop`, `forget`, a failure, or the endpoint may no longer be used ─▶ ENDING
 * ENDING     starts nothing more; attempts that wait for a slot are dropped. Requests in progress are finished and
 *            recorded, or dropped after `forget`.
 *              every lane has ended ─▶ RELEASING      after `forget` ─▶ done
 * RELEASING  releases the endpoint.
 *              deliveries are due already ─▶ LOOKING, unless it comes from ENDING
 *              released ─▶ done, which rejects after a failure
 *
 * SENDING has a non-empty `running`, ENDING has a defined `ending`. `unread` is what else may be due.
 */

/** Sends all due deliveries of one endpoint, then ends. */
export interface EndpointWorker {
  readonly startedAtMs: number;
  /** Makes the worker look for due deliveries. Call it when more may be due. */
  poke(): void;
  /** Makes the worker read the endpoint before the next request. Call it when the endpoint may have changed. */
  invalidate(): void;
  /** Starts no more requests. Requests in progress are finished and recorded. */
  stop(): void;
  /** Drops everything that it has read from the database, and ends. */
  forget(): void;
  /**
   * Resolves when the worker ends, with whether more deliveries may be due since its last check. Rejects when the
   * database or the key store failed. The next process that claims the endpoint repeats the attempts that were not
   * recorded.
   */
  readonly done: Promise<boolean>;
}

export interface WorkerOptions extends JobContext {
  readonly journal: AttemptJournal;
  /** The slots of all endpoints of the process. */
  readonly slots: DeliverySlots;
  /** Confirms that no other process has taken over this process's claims. Undefined if none can. */
  readonly alive?: Pick<Heartbeat, 'confirm'> | undefined;
  /** Translates a stored payload to the brand of this server. */
  writePayload(payload: string): string;
}

/** The maximum number of concurrent lanes. It includes lanes that wait for a commit and have no request in progress. */
const MAX_LANES = 64;
const READ_AT_ONCE = 200;

/** Why no more requests are started. */
type Ending = 'stopped' | 'forgotten' | { readonly failure: unknown };

interface Worker extends WorkerOptions {
  readonly endpointId: string;
  readonly endpoint: ClaimedEndpoint;
  readonly requests: EndpointSlots;
  /** The first delivery of each running lane, by its order key, or by its id if it has no order. */
  readonly running: Map<string, DueDelivery>;
  /** Lanes that were read but not started. */
  queue: Lane[];
  /** More deliveries that may be due. A check skips deliveries that are queued behind running lanes. */
  unread: 'perhaps some' | 'some behind lanes' | 'none';
  ending: Ending | undefined;
  /** Resolves when a lane has ended, more deliveries may be due, or the worker must end. */
  change: PromiseWithResolvers<void>;
}

/** Starts the worker of an endpoint that this process has claimed. */
export function startEndpointWorker(endpointId: string, options: WorkerOptions): EndpointWorker {
  const worker: Worker = {
    ...options,
    endpointId,
    endpoint: claimedEndpoint(endpointId, options),
    requests: options.slots.open(endpointId),
    running: new Map(),
    queue: [],
    unread: 'perhaps some',
    ending: undefined,
    change: Promise.withResolvers(),
  };
  return {
    startedAtMs: options.services.clock.now(),
    poke() {
      worker.unread = 'perhaps some';
      worker.change.resolve();
    },
    invalidate: worker.endpoint.invalidate,
    stop: () => end(worker, 'stopped'),
    forget: () => end(worker, 'forgotten'),
    done: work(worker),
  };
}

function end(worker: Worker, ending: Ending): void {
  // `forgotten` overrides the other endings, because nothing may be recorded after it. A failure overrides `stopped`.
  if (worker.ending === undefined || worker.ending === 'stopped' || ending === 'forgotten') {
    worker.ending = ending;
  }
  worker.queue = [];
  worker.requests.close();
  worker.change.resolve();
}

async function work(worker: Worker): Promise<boolean> {
  for (;;) {
    await sendAll(worker).catch((failure: unknown) => end(worker, { failure }));
    // Wait even after a failure: no other process may claim the endpoint while requests to it are in progress.
    while (worker.running.size > 0) await nextChange(worker);
    const { ending, endpoint } = worker;
    if (ending === 'forgotten') return false;
    if (typeof ending === 'object') {
      // Another process may succeed. If the release fails too, the claim expires.
      await endpoint.release(true).catch(() => undefined);
      throw ending.failure;
    }
    if (await endpoint.release(ending === 'stopped')) return worker.unread === 'perhaps some';
    worker.unread = 'perhaps some';
  }
}

/** Resolves when no more deliveries are due or the worker must end. */
async function sendAll(worker: Worker): Promise<void> {
  while (worker.ending === undefined) {
    const hasRoom = worker.queue.length === 0 && worker.running.size < MAX_LANES;
    if (worker.unread === 'perhaps some' && hasRoom) await readDue(worker);
    startLanes(worker);
    if (worker.running.size > 0) await nextChange(worker);
    else if (worker.unread === 'none') return;
  }
}

async function nextChange(worker: Worker): Promise<void> {
  await worker.change.promise;
  worker.change = Promise.withResolvers();
}

/** Reads the due deliveries. */
async function readDue(worker: Worker): Promise<void> {
  const { endpointId, endpoint, requests, running } = worker;
  const firsts = [...running.values()];
  const underWay = {
    deliveryIds: firsts.flatMap(({ id, orderKey }) => (orderKey === null ? [id] : [])),
    orderKeys: firsts.flatMap(({ orderKey }) => orderKey ?? []),
  };
  worker.unread = firsts.length > 0 ? 'some behind lanes' : 'none';
  const read = await endpoint.read((em, nowMs) =>
    readDueDeliveries(em, endpointId, { nowMs, limit: READ_AT_ONCE, underWay }),
  );
  if (read === undefined) return end(worker, 'stopped');
  requests.identify(read.endpoint.app_id, read.endpoint.failing_since_ms !== null);
  if (!read.more.isAll) worker.unread = 'perhaps some';
  if (worker.ending === undefined) worker.queue = read.more.lanes;
}

function startLanes(worker: Worker): void {
  while (worker.queue.length > 0 && worker.running.size < MAX_LANES) {
    const lane = worker.queue.shift()!;
    const key = lane[0].orderKey ?? lane[0].id;
    worker.running.set(key, lane[0]);
    void runLane(worker, lane)
      .catch((failure: unknown) => end(worker, { failure }))
      .then(() => {
        worker.running.delete(key);
        if (worker.unread === 'some behind lanes') worker.unread = 'perhaps some';
        worker.change.resolve();
      });
  }
}

async function runLane(worker: Worker, lane: Lane): Promise<void> {
  for (const delivery of lane) {
    // A delivery without attempts had only to wait for the delivery before it.
    const isDue = delivery.failures === 0 || delivery.nextAttemptAtMs <= worker.services.clock.now();
    if (!isDue) return;
    const finished = await worker.requests.enter(() => attempt(worker, delivery));
    if (finished === undefined || worker.ending === 'forgotten') return;
    // INVARIANT: the next delivery is sent only after the outcome of this delivery is committed. After a crash, an
    // earlier event of the resource therefore never follows a later one.
    await worker.journal.record(finished);
    const isOver = finished.isDelivered || delivery.failures + 1 >= MAX_ATTEMPTS;
    if (!isOver) return;
  }
}

/** Attempts a delivery. Returns undefined if the worker must end. */
async function attempt(worker: Worker, delivery: DueDelivery): Promise<FinishedAttempt | undefined> {
  if (worker.ending !== undefined) return undefined;
  const target = await worker.endpoint.target();
  if (target === undefined) end(worker, 'stopped');
  if (target === undefined || worker.ending !== undefined) return undefined;
  const { services, writePayload } = worker;
  return attemptDelivery(services, delivery, { ...target, writePayload });
}
