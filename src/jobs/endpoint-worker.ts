import { attemptDelivery } from '../domain/access/webhooks/attempt-delivery.ts';
import { type DueDelivery, type Lane, readDueDeliveries } from '../domain/access/webhooks/due-deliveries.ts';
import type { FinishedAttempt } from '../domain/access/webhooks/record-attempts.ts';
import { MAX_ATTEMPTS } from '../domain/access/webhooks/retry-schedule.ts';
import { type Admission, createAdmission } from './admission.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import { type ClaimedEndpoint, claimedEndpoint } from './claimed-endpoint.ts';
import type { JobContext } from './job-context.ts';

/*
 * The states of a worker, from the claim of its endpoint to its release:
 *
 *   start ──▶ LOOKING ◀──▶ SENDING ──▶ RELEASING ──▶ done
 *                │            │            ▲
 *                └──────────▶ ENDING ──────┘
 *
 * LOOKING    reads the endpoint and what is due to it.
 *              something is due ─▶ SENDING            nothing is due ─▶ RELEASING
 *              the endpoint is disabled, deleted or claimed by another process ─▶ ENDING
 * SENDING    runs a lane for each resource: attempt a delivery, have its outcome committed, attempt the next. An attempt
 *            waits for its turn among the requests to the endpoint, then for the endpoint as it is now.
 *              fewer lanes than there may be, and more may be due ─▶ LOOKING, while lanes run on
 *              every lane has ended, nothing more is due ─▶ RELEASING
 *              `stop`, `forget`, a failure, or the endpoint may not be used any more ─▶ ENDING
 * ENDING     begins nothing more. Requests under way are finished and recorded, or dropped after `forget`.
 *              every lane has ended ─▶ RELEASING      after `forget` ─▶ done
 * RELEASING  gives the endpoint back.
 *              something is due already ─▶ LOOKING, unless it comes from ENDING
 *              given back ─▶ done, which rejects after a failure
 *
 * `running` tells SENDING from LOOKING, `ending` tells ENDING. `unread` is what the last look may have left unread.
 */

/** Sends to one endpoint what is due to it, then ends. */
export interface EndpointWorker {
  readonly startedAtMs: number;
  /** Something may be due that was not before. */
  poke(): void;
  /** The endpoint may have been changed: it is read again before anything else is sent. */
  doubt(): void;
  /** Begins nothing more; what is under way is finished and recorded. */
  stop(): void;
  /** Drops what was read of the database, and ends. */
  forget(): void;
  /**
   * Resolves at the end: whether it was poked after it had looked for the last time. Rejects when the database or the
   * vault failed; what was not recorded is attempted again by whoever claims the endpoint next.
   */
  readonly done: Promise<boolean>;
}

export interface WorkerOptions extends JobContext {
  /** Names this process among those that share the database. */
  readonly owner: string;
  readonly journal: AttemptJournal;
  /** The stored body in the words that clients of this server know. */
  writePayload(payload: string): string;
}

/**
 * CHOICE: requests to one endpoint at a time, so that one that comes back after an hour is not overrun; one while it
 * fails, which is enough to notice that it works again. There is no bound on all endpoints together: slow ones would
 * use it up for the others.
 */
const MAX_AT_ONCE = 16;
const AT_ONCE_WHILE_FAILING = 1;
/** Resources at a time, those included whose outcome is being committed: they are not sent to meanwhile. */
const MAX_LANES = 64;
const READ_AT_ONCE = 200;

/** Why nothing more is begun. */
type Ending = 'stopped' | 'forgotten' | { readonly failure: unknown };

interface Worker extends WorkerOptions {
  readonly endpointId: string;
  readonly endpoint: ClaimedEndpoint;
  /** Requests to the endpoint at a time. */
  readonly requests: Admission;
  /** The first delivery of each lane under way, by its resource, or its own id when it keeps no order. */
  readonly running: Map<string, DueDelivery>;
  /** Lanes that were read and have not begun. */
  queue: Lane[];
  /** What may be due beside what was read. A look leaves out what is behind lanes under way. */
  unread: 'perhaps some' | 'some behind lanes' | 'none';
  ending: Ending | undefined;
  /** Resolves when a lane has ended, something may be due or the worker is to end. */
  change: PromiseWithResolvers<void>;
}

/** Starts to send to an endpoint that this process has claimed. */
export function startEndpointWorker(endpointId: string, options: WorkerOptions): EndpointWorker {
  const worker: Worker = {
    ...options,
    endpointId,
    endpoint: claimedEndpoint(endpointId, options),
    requests: createAdmission(MAX_AT_ONCE),
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
    doubt: worker.endpoint.doubt,
    stop: () => end(worker, 'stopped'),
    forget: () => end(worker, 'forgotten'),
    done: work(worker),
  };
}

function end(worker: Worker, ending: Ending): void {
  // What was forgotten is not recorded, and a failure is not a stop.
  if (worker.ending === undefined || worker.ending === 'stopped' || ending === 'forgotten') {
    worker.ending = ending;
  }
  worker.queue = [];
  worker.change.resolve();
}

async function work(worker: Worker): Promise<boolean> {
  for (;;) {
    await sendAll(worker).catch((failure: unknown) => end(worker, { failure }));
    // Whatever happened, nobody else may claim the endpoint while requests to it are under way.
    while (worker.running.size > 0) await nextChange(worker);
    const { ending, endpoint } = worker;
    if (ending === 'forgotten') return false;
    if (typeof ending === 'object') {
      // Another process may do better. Where this fails too, the endpoint is given back when the lease is over.
      await endpoint.release(true).catch(() => undefined);
      throw ending.failure;
    }
    if (await endpoint.release(ending === 'stopped')) return worker.unread === 'perhaps some';
    worker.unread = 'perhaps some';
  }
}

/** Until nothing is due any more, or the worker is to end. */
async function sendAll(worker: Worker): Promise<void> {
  while (worker.ending === undefined) {
    const hasRoom = worker.queue.length === 0 && worker.running.size < MAX_LANES;
    if (worker.unread === 'perhaps some' && hasRoom) await look(worker);
    startLanes(worker);
    if (worker.running.size > 0) await nextChange(worker);
    else if (worker.unread === 'none') return;
  }
}

async function nextChange(worker: Worker): Promise<void> {
  await worker.change.promise;
  worker.change = Promise.withResolvers();
}

/** Reads what is due. */
async function look(worker: Worker): Promise<void> {
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
  requests.limitTo(read.endpoint.failing_since_ms === null ? MAX_AT_ONCE : AT_ONCE_WHILE_FAILING);
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
    // What was never attempted has only waited for the one before it.
    const isDue = delivery.failures === 0 || delivery.nextAttemptAtMs <= worker.services.clock.now();
    if (!isDue) return;
    const finished = await worker.requests.enter(() => attempt(worker, delivery));
    if (finished === undefined || worker.ending === 'forgotten') return;
    // INVARIANT: the next one is not sent before this one's outcome is committed, so that after a crash no earlier
    // event of the resource follows a later one.
    await worker.journal.record(finished);
    const isOver = finished.isDelivered || delivery.failures + 1 >= MAX_ATTEMPTS;
    if (!isOver) return;
  }
}

/** Undefined when nothing may be sent any more. */
async function attempt(worker: Worker, delivery: DueDelivery): Promise<FinishedAttempt | undefined> {
  if (worker.ending !== undefined) return undefined;
  const target = await worker.endpoint.target();
  if (target === undefined) end(worker, 'stopped');
  if (target === undefined || worker.ending !== undefined) return undefined;
  const { services, requests, writePayload } = worker;
  const finished = await attemptDelivery(services, delivery, { ...target, writePayload });
  requests.limitTo(finished.isDelivered ? MAX_AT_ONCE : AT_ONCE_WHILE_FAILING);
  return finished;
}
