import { attemptDelivery, type SigningSecret } from '../domain/access/webhooks/attempt-delivery.ts';
import {
  type Claimant,
  type EndpointRow,
  holdEndpoint,
  LEASE_MS,
  releaseEndpoint,
} from '../domain/access/webhooks/claim-endpoints.ts';
import { type DueDelivery, type Lane, readDueDeliveries } from '../domain/access/webhooks/due-deliveries.ts';
import type { FinishedAttempt } from '../domain/access/webhooks/record-attempts.ts';
import { ATTEMPT_TIMEOUT_MS, MAX_ATTEMPTS } from '../domain/access/webhooks/retry-schedule.ts';
import {
  openWebhookSecret,
  readWebhookSecrets,
  type SecretRow,
} from '../domain/access/webhooks/webhook-secrets.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import type { JobContext } from './job-context.ts';

/** Sends to one endpoint what is due to it, then ends. */
export interface EndpointWorker {
  readonly startedAtMs: number;
  /** Something may be due that was not before. */
  poke(): void;
  /** The endpoint may have been changed, too: it is read again before anything else is sent. */
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
/** Resources at a time, those included whose outcome is being committed: they are not sent to meanwhile. */
const MAX_LANES = 64;
const READ_AT_ONCE = 200;
/** An attempt begins only while the endpoint is ours for longer than it can take. */
const LEAST_LEASE_MS = ATTEMPT_TIMEOUT_MS + 5_000;

interface Worker extends WorkerOptions {
  readonly endpointId: string;
  url: string;
  /** By id, opened once: a vault may be a service elsewhere. */
  secrets: ReadonlyMap<string, SigningSecret>;
  queue: Lane[];
  /** The first delivery of each lane under way, by what `laneKey` says. */
  readonly running: Map<string, DueDelivery>;
  /** Requests under way, and lanes that wait to be among them. */
  sending: number;
  readonly waiting: (() => void)[];
  isFailing: boolean;
  mayHaveMore: boolean;
  /** What was due behind a lane under way was left out of the last look. */
  mustLookAfterLane: boolean;
  isStopping: boolean;
  hasForgotten: boolean;
  isDoubtful: boolean;
  /** Under way: whether the endpoint is still ours. */
  rereading: Promise<boolean> | undefined;
  /** How often the endpoint was looked at, and which look is what we know of it. */
  lookCount: number;
  knownLook: number;
  leasedUntilMs: number;
  failure: unknown;
  /** Resolves when a lane has ended, something new is due or all is to stop. */
  change: PromiseWithResolvers<void>;
}

/** Starts to send to an endpoint that this process has claimed. */
export function startEndpointWorker(endpointId: string, options: WorkerOptions): EndpointWorker {
  const worker: Worker = {
    ...options,
    endpointId,
    url: '',
    secrets: new Map(),
    queue: [],
    running: new Map(),
    sending: 0,
    waiting: [],
    isFailing: false,
    mayHaveMore: true,
    mustLookAfterLane: false,
    isStopping: false,
    hasForgotten: false,
    isDoubtful: false,
    rereading: undefined,
    lookCount: 0,
    knownLook: 0,
    leasedUntilMs: 0,
    failure: undefined,
    change: Promise.withResolvers(),
  };
  const poke = (): void => {
    worker.mayHaveMore = true;
    worker.change.resolve();
  };
  return {
    startedAtMs: options.services.clock.now(),
    poke,
    doubt() {
      worker.isDoubtful = true;
      poke();
    },
    stop: () => stop(worker),
    forget() {
      worker.hasForgotten = true;
      stop(worker);
    },
    done: work(worker),
  };
}

function stop(worker: Worker): void {
  worker.isStopping = true;
  worker.queue = [];
  for (const go of worker.waiting.splice(0)) go();
  worker.change.resolve();
}

async function work(worker: Worker): Promise<boolean> {
  for (;;) {
    await sendAll(worker).catch((error: unknown) => fail(worker, error));
    // Whatever happened, nobody else may claim the endpoint while requests to it are under way.
    while (worker.running.size > 0) await nextChange(worker);
    if (worker.hasForgotten) return false;
    if (worker.failure !== undefined) {
      // Another process may do better. Where this fails too, the endpoint is given back when the lease is over.
      await release(worker).catch(() => undefined);
      throw worker.failure;
    }
    if (await release(worker)) return worker.mayHaveMore;
    worker.mayHaveMore = true;
  }
}

function fail(worker: Worker, error: unknown): void {
  worker.failure ??= error;
  stop(worker);
}

function release(worker: Worker): Promise<boolean> {
  const { endpointId, isStopping } = worker;
  return worker.inUnit((em) => releaseEndpoint(em, claimant(worker), endpointId, isStopping));
}

/** Until nothing is due any more, or all is to stop. */
async function sendAll(worker: Worker): Promise<void> {
  while (!worker.isStopping) {
    if (worker.mayHaveMore && worker.queue.length === 0 && worker.running.size < MAX_LANES) {
      await refill(worker);
    }
    startLanes(worker);
    if (worker.running.size > 0) await nextChange(worker);
    else if (!worker.mayHaveMore) return;
  }
}

async function nextChange(worker: Worker): Promise<void> {
  await worker.change.promise;
  worker.change = Promise.withResolvers();
}

/** Resolves when one more request may be under way. */
async function enter(worker: Worker): Promise<void> {
  while (worker.sending >= (worker.isFailing ? 1 : MAX_AT_ONCE) && !worker.isStopping) {
    await new Promise<void>((resolve) => worker.waiting.push(resolve));
  }
  worker.sending += 1;
}

function leave(worker: Worker): void {
  worker.sending -= 1;
  // As many as may enter now, which are more when the endpoint has just ceased to fail.
  for (const go of worker.waiting.splice(0, MAX_AT_ONCE)) go();
}

function claimant({ owner, services }: Worker): Claimant {
  return { owner, nowMs: services.clock.now() };
}

/** Reads what is due, what is signed with, and whether and where it may be sent. */
async function refill(worker: Worker): Promise<void> {
  worker.mayHaveMore = false;
  worker.mustLookAfterLane = worker.running.size > 0;
  const { endpointId, running } = worker;
  const now = beginLook(worker);
  const underWay = {
    deliveryIds: [...running.values()].flatMap(({ id, orderKey }) => (orderKey === null ? [id] : [])),
    orderKeys: [...running.values()].flatMap(({ orderKey }) => orderKey ?? []),
  };
  const read = await worker.inUnit(async (em) => {
    const endpoint = await holdEndpoint(em, now, endpointId);
    if (endpoint === undefined) return undefined;
    const secrets = await readWebhookSecrets(em, endpointId, now.nowMs);
    const due = await readDueDeliveries(em, endpointId, { ...now, limit: READ_AT_ONCE, underWay });
    return { endpoint, secrets, ...due };
  });
  if (read === undefined) return stop(worker);
  const { endpoint, lanes, isAll } = read;
  await keep(worker, read, now);
  worker.isFailing = endpoint.failing_since_ms !== null;
  if (!isAll) worker.mayHaveMore = true;
  if (!worker.isStopping) worker.queue = lanes;
}

async function openNewSecrets(
  { secrets, services }: Worker,
  rows: readonly SecretRow[],
): Promise<Map<string, SigningSecret>> {
  const opened = rows.map(async (row) => {
    const text = secrets.get(row.id)?.text ?? (await openWebhookSecret(services.vault, row));
    return [row.id, { text, expiresAtMs: row.expires_at_ms }] as const;
  });
  return new Map(await Promise.all(opened));
}

function startLanes(worker: Worker): void {
  while (worker.queue.length > 0 && worker.running.size < MAX_LANES) {
    const lane = worker.queue.shift()!;
    const key = lane[0].orderKey ?? lane[0].id;
    worker.running.set(key, lane[0]);
    void runLane(worker, lane)
      .catch((error: unknown) => fail(worker, error))
      .then(() => {
        worker.running.delete(key);
        if (worker.mustLookAfterLane) worker.mayHaveMore = true;
        worker.change.resolve();
      });
  }
}

async function runLane(worker: Worker, lane: Lane): Promise<void> {
  for (const delivery of lane) {
    // What was never attempted has only waited for the one before it.
    const isDue = delivery.failures === 0 || delivery.nextAttemptAtMs <= worker.services.clock.now();
    if (!isDue) return;
    const finished = await sendInTurn(worker, delivery);
    if (finished === undefined || worker.hasForgotten) return;
    // INVARIANT: the next one is not sent before this one's outcome is committed, so that after a crash no earlier
    // event of the resource follows a later one.
    await worker.journal.record(finished);
    const isOver = finished.isDelivered || delivery.failures + 1 >= MAX_ATTEMPTS;
    if (!isOver) return;
  }
}

/** Undefined when nothing may be sent any more. */
async function sendInTurn(worker: Worker, delivery: DueDelivery): Promise<FinishedAttempt | undefined> {
  await enter(worker);
  try {
    if (worker.isStopping) return undefined;
    if (!(await isStillOurs(worker))) stop(worker);
    if (worker.isStopping) return undefined;
    const { url, writePayload } = worker;
    const secrets = [...worker.secrets.values()];
    const finished = await attemptDelivery(worker.services, delivery, { url, secrets, writePayload });
    worker.isFailing = !finished.isDelivered;
    return finished;
  } finally {
    leave(worker);
  }
}

/**
 * Whether the endpoint is ours and stands as we know it: it is read again where it may have changed, or where little is
 * left of our time.
 */
async function isStillOurs(worker: Worker): Promise<boolean> {
  const isShort = () => worker.leasedUntilMs - worker.services.clock.now() < LEAST_LEASE_MS;
  while (worker.rereading !== undefined || worker.isDoubtful || isShort()) {
    worker.rereading ??= reread(worker).finally(() => {
      worker.rereading = undefined;
    });
    if (!(await worker.rereading)) return false;
  }
  return true;
}

/** One look for all requests that are about to be made. */
async function reread(worker: Worker): Promise<boolean> {
  worker.isDoubtful = false;
  const now = beginLook(worker);
  const read = await worker.inUnit(async (em) => {
    const endpoint = await holdEndpoint(em, now, worker.endpointId);
    if (endpoint === undefined) return undefined;
    return { endpoint, secrets: await readWebhookSecrets(em, worker.endpointId, now.nowMs) };
  });
  if (read === undefined) return false;
  await keep(worker, read, now);
  return true;
}

interface Look extends Claimant {
  readonly number: number;
}

function beginLook(worker: Worker): Look {
  worker.lookCount += 1;
  return { ...claimant(worker), number: worker.lookCount };
}

/** Keeps what a look has shown of the endpoint, unless one that began later was quicker. */
async function keep(
  worker: Worker,
  { endpoint, secrets }: { endpoint: EndpointRow; secrets: readonly SecretRow[] },
  { number, nowMs }: Look,
): Promise<void> {
  const opened = await openNewSecrets(worker, secrets);
  if (number < worker.knownLook) return;
  worker.knownLook = number;
  worker.secrets = opened;
  worker.url = endpoint.url;
  worker.leasedUntilMs = nowMs + LEASE_MS;
}
