import { ApiError } from '../errors.ts';
import type { OperationId } from '../generated/operations.ts';
import type { Log } from '../ports/runtime.ts';
import { RequestAbortedError } from './read-body.ts';
import type { Answer, RequestState } from './request-state.ts';
import type { Operation } from './route-index.ts';

/** Measures how long received requests wait for the event loop. */
interface LoopDelay {
  /**
   * Returns the number of the current turn of the event loop, and how long this turn has been reading requests. All
   * requests of a turn had arrived when it began, so each of them has waited at least this long.
   */
  current(): { readonly turn: number; readonly elapsedMs: number };
}

/**
 * Returns a measurement of this process's turns. A turn begins with the first request that is read, and ends when no
 * more sockets are readable.
 */
export function measureLoopDelay(): LoopDelay {
  let turn = 0;
  let startedMs: number | undefined;
  const end = (): void => {
    startedMs = undefined;
  };
  return {
    current() {
      const nowMs = performance.now();
      if (startedMs === undefined) {
        startedMs = nowMs;
        turn += 1;
        // Runs after all sockets that are readable now.
        setImmediate(end);
      }
      return { turn, elapsedMs: nowMs - startedMs };
    },
  };
}

/** A class of requests with similar costs. Each class has its own limits, so that no class starves another. */
type WorkClass = 'reads' | 'writes' | 'signing';

export interface AdmissionLimits {
  /** The maximum number of requests in progress, including those that wait. */
  readonly requests: number;
  /**
   * The maximum number of concurrent units of work, by class. Each turn of the event loop admits the same number even
   * when the loop is late.
   */
  readonly concurrent: Readonly<Record<WorkClass, number>>;
  /** How long a request may wait, in ms, once a queue has lasted longer than `BURST_MS`. */
  readonly delayMs: number;
}

interface AdmissionOptions {
  readonly limits: AdmissionLimits;
  /** Ids of the operations that use a private key. */
  readonly signing: readonly string[];
  readonly loop: LoopDelay;
  /** A monotonic clock, ms. */
  readonly now: () => number;
  readonly log: Log;
}

/** The state of the admission control, for metrics. */
interface AdmissionCounts {
  readonly requests: number;
  readonly waiting: Readonly<Record<WorkClass, number>>;
  readonly refused: Readonly<Record<WorkClass, number>>;
}

type AdmittedRequest = Pick<RequestState, 'route' | 'response'>;

/** Work that holds its place until `leave` is called. */
interface AdmittedWork {
  readonly isSigning: boolean;
  leave(): void;
}

/** Decides which requests run. Refused requests cost as little work as possible. */
export interface Admission {
  /**
   * Counts a request.
   * @returns the 503 response if the request is refused.
   */
  enter(operation: Operation | undefined): Answer | undefined;
  /** Must be called when an admitted request has ended. */
  leave(): void;
  /**
   * Waits until the request may begin its unit of work.
   *
   * @throws ApiError unavailable when the wait is too long; RequestAbortedError when the client has disconnected.
   */
  begin(state: AdmittedRequest): Promise<AdmittedWork>;
  /**
   * Works like `begin`, but always queues with the requests that sign. Use it for signatures outside a unit of work.
   */
  beginSigning(state: AdmittedRequest): Promise<AdmittedWork>;
  /** Returns how many requests are in progress, how many of them wait, and how many were refused since the start. */
  counts(): AdmissionCounts;
}

/** A queue that lasts less than this is a burst, and is served. */
const BURST_MS = 500;
/**
 * CHOICE: a queue that returns within this time after a refusal counts as the same queue. Refusals empty a queue for a
 * moment. If the server admitted everything until the new queue had lasted `BURST_MS` again, those requests would wait
 * many times as long.
 */
const SAME_QUEUE_MS = 1_000;
/** The maximum wait of a request in a burst. */
const BURST_WAIT_MS = 3_000;
/** CHOICE: a burst of this size is accepted, for example all clients of a fleet that start at the same moment. */
const QUEUE_PER_CLASS = 256;
const LOG_EVERY_MS = 1_000;

function perClass<T>(read: (name: WorkClass) => T): Record<WorkClass, T> {
  return { reads: read('reads'), writes: read('writes'), signing: read('signing') };
}

/**
 * Creates the admission control. It limits the two waits of a request: for the event loop, and for a unit of work. Both
 * follow CoDel (RFC 8289). A queue that drains is fine. A queue that persists delays every request without serving more
 * of them. While it persists, and if it returns within a second, only requests that wait less than `delayMs` are
 * admitted.
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { limits, now, log } = options;
  const isDelayed = judgeLoop(options);
  const queues = perClass((name) => createQueue(limits.concurrent[name], options));
  const signing = new Set(options.signing);
  const classOf = (operation: Operation | undefined): WorkClass => {
    if (operation === undefined || operation.method === 'GET') return 'reads';
    return signing.has(operation.id) ? 'signing' : 'writes';
  };
  let requests = 0;
  // Refusals since the last log line, and since the start.
  let refused = 0;
  const allRefused = { reads: 0, writes: 0, signing: 0 };
  let loggedAtMs = Number.NEGATIVE_INFINITY;

  const beginAs = async (name: WorkClass, { response }: AdmittedRequest): Promise<AdmittedWork> => ({
    isSigning: name === 'signing',
    leave: await queues[name].enter(() => response.destroyed),
  });
  const refuse = (name: WorkClass): Answer => {
    refused += 1;
    allRefused[name] += 1;
    if (now() - loggedAtMs >= LOG_EVERY_MS) {
      // Refusals are logged together, because logging each one would cost more than refusing it.
      log.warn({ refused, requests }, 'overloaded, requests rejected');
      loggedAtMs = now();
      refused = 0;
    }
    return overloaded;
  };
  return {
    enter(operation) {
      const name = classOf(operation);
      if (requests >= limits.requests || isDelayed(name)) return refuse(name);
      requests += 1;
      return undefined;
    },
    leave() {
      requests -= 1;
    },
    begin: (state) => beginAs(classOf(state.route?.operation), state),
    beginSigning: (state) => beginAs('signing', state),
    counts: () => ({
      requests,
      waiting: perClass((name) => queues[name].waiting()),
      refused: perClass((name) => allRefused[name] + queues[name].refused()),
    }),
  };
}

/** Returns a function that tells whether a request of a class has waited too long for the event loop. */
function judgeLoop({ limits, loop, now }: AdmissionOptions): (name: WorkClass) => boolean {
  let turn = -1;
  let elapsedMs = 0;
  let lastMs = 0;
  let admitted = { reads: 0, writes: 0, signing: 0 };
  let lateSinceMs: number | undefined;
  let refusedAtMs = Number.NEGATIVE_INFINITY;
  return (name) => {
    const current = loop.current();
    const nowMs = now();
    if (current.turn !== turn) {
      // A short turn or a pause means that the queue has drained.
      const wasShort = elapsedMs <= limits.delayMs || nowMs - lastMs > BURST_MS;
      if (wasShort) lateSinceMs = undefined;
      turn = current.turn;
      admitted = { reads: 0, writes: 0, signing: 0 };
    }
    elapsedMs = current.elapsedMs;
    lastMs = nowMs;
    if (elapsedMs > limits.delayMs) {
      lateSinceMs ??= nowMs;
      const isStanding = nowMs - lateSinceMs > BURST_MS || nowMs - refusedAtMs <= SAME_QUEUE_MS;
      if (isStanding && admitted[name] >= limits.concurrent[name]) {
        refusedAtMs = nowMs;
        return true;
      }
    }
    admitted[name] += 1;
    return false;
  };
}

interface Queue {
  /** Waits for a permit. Resolves with a function that returns the permit. */
  enter(hasDisconnected: () => boolean): Promise<() => void>;
  waiting(): number;
  refused(): number;
}

/** Returns a queue that admits at most `permits` requests concurrently, in the order of arrival. */
function createQueue(permits: number, { limits, now }: AdmissionOptions): Queue {
  let free = permits;
  let refused = 0;
  const waiting = new Set<() => void>();
  let waitingSinceMs = 0;
  let refusedAtMs = Number.NEGATIVE_INFINITY;

  const leaveOnce = (): (() => void) => {
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      free += 1;
      const [next] = waiting;
      next?.();
    };
  };
  return {
    waiting: () => waiting.size,
    refused: () => refused,
    async enter(hasDisconnected) {
      if (free > 0) {
        free -= 1;
        return leaveOnce();
      }
      const nowMs = now();
      if (waiting.size >= QUEUE_PER_CLASS) {
        refused += 1;
        throw unavailable();
      }
      if (waiting.size === 0) waitingSinceMs = nowMs;
      const isStanding = nowMs - waitingSinceMs > BURST_MS || nowMs - refusedAtMs <= SAME_QUEUE_MS;
      const waitMs = isStanding ? limits.delayMs : BURST_WAIT_MS;
      return await new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(proceed);
          refused += 1;
          refusedAtMs = now();
          reject(unavailable());
        }, waitMs);
        const proceed = (): void => {
          waiting.delete(proceed);
          clearTimeout(timer);
          free -= 1;
          const leave = leaveOnce();
          if (!hasDisconnected()) {
            resolve(leave);
            return;
          }
          reject(new RequestAbortedError('the client closed the connection while its request was waiting'));
          leave();
        };
        waiting.add(proceed);
      });
    },
  };
}

const RETRY_AFTER_SECONDS = 1;
const MESSAGE = 'the server has more requests than it can answer in time';

function unavailable(): ApiError {
  return new ApiError('unavailable', MESSAGE, { headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } });
}

// Created once, because creating an error with a stack trace would cost more than the rest of the refusal.
const overloaded: Answer = {
  status: unavailable().status,
  body: unavailable().toBody(),
  headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
};

/** The permit of a request to run in a unit of work. */
export interface Permit {
  /** Waits for the permit. Throws like `Admission.begin`. */
  take(): Promise<void>;
  leave(): void;
  /**
   * Calls the key store with a permit for requests that sign. A request with another permit returns that one before the
   * call, so that a hanging key store does not block requests that need no key.
   */
  whileAsking<T>(ask: () => Promise<T>): Promise<T>;
}

export function permitOf(
  state: RequestState,
  admission: Pick<Admission, 'begin' | 'beginSigning'> | undefined,
): Permit {
  let held: (() => void) | undefined;
  let isOfSigning = false;

  async function take(): Promise<void> {
    if (admission === undefined) return;
    ({ leave: held, isSigning: isOfSigning } = await admission.begin(state));
  }
  function leave(): void {
    held?.();
    held = undefined;
  }

  return {
    take,
    leave,
    async whileAsking(ask) {
      const hadPermit = held !== undefined;
      if (admission === undefined || (hadPermit && isOfSigning)) return ask();
      leave();
      const signing = await admission.beginSigning(state);
      let answer: Awaited<ReturnType<typeof ask>>;
      try {
        answer = await ask();
      } finally {
        signing.leave();
      }
      if (hadPermit) await take();
      return answer;
    },
  };
}

/** The operations that use a private key, or that create one for a session. */
const signing: readonly OperationId[] = [
  'authenticateUserSigner',
  'authenticateWalletIntents',
  'authenticateWallets',
  'authorizeIntent',
  'claimEthereumEarnIncentive',
  'createFiatPayout',
  'depositEthereumEarn',
  'executeWalletSwap',
  'exportWallet',
  'rawSignWallet',
  'transferFromWallet',
  'walletRpc',
  'withdrawEthereumEarn',
];

/** Returns the counts of a server in which each cell has its own admission control. */
export function sumOfCounts(all: Iterable<Pick<Admission, 'counts'> | undefined>): AdmissionCounts {
  const counts = [...all].flatMap((each) => each?.counts() ?? []);
  const sum = (read: (each: AdmissionCounts) => number): number =>
    counts.reduce((total, each) => total + read(each), 0);
  return {
    requests: sum(({ requests }) => requests),
    waiting: perClass((name) => sum(({ waiting }) => waiting[name])),
    refused: perClass((name) => sum(({ refused }) => refused[name])),
  };
}

/** Returns the admission control of one server; undefined without limits. */
export function admissionFor(limits: AdmissionLimits | undefined, log: Log): Admission | undefined {
  if (limits === undefined) return undefined;
  return createAdmission({
    limits,
    signing,
    loop: measureLoopDelay(),
    now: performance.now.bind(performance),
    log,
  });
}
