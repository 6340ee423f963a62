import { LRUCache } from 'lru-cache';

/**
 * Limits the concurrent webhook requests of a process. Each request needs a socket and memory, and a request that hangs
 * keeps them until its timeout.
 *
 * An endpoint may have two concurrent requests until its first success, then sixteen, and one while it fails. While a
 * request has lasted longer than a second, its endpoint counts as slow and may have four. Unproven and slow endpoints
 * share a smaller number of slots, so most slots stay available to the others. If several endpoints wait, the app with
 * the fewest requests comes next.
 */
export interface DeliverySlots {
  open(endpointId: string): EndpointSlots;
  /** Returns the numbers of requests in progress. */
  counts(): { readonly all: number; readonly unproven: number };
}

export interface EndpointSlots {
  /** Sets the endpoint's app, and whether the endpoint fails, according to the database. Call it before `enter`. */
  identify(appId: string, isFailing: boolean): void;
  /**
   * Calls `send` as soon as a slot is free. Returns undefined if `close` was called first. `isDelivered` of the result
   * determines how many requests the endpoint may have next.
   */
  enter<T extends { readonly isDelivered: boolean } | undefined>(
    send: () => Promise<T>,
  ): Promise<T | undefined>;
  /** Stops starting requests. Requests in progress continue. */
  close(): void;
}

/** CHOICE: the limits of one process. A TLS request takes about 200 kB. */
const MAX_REQUESTS = 256;
const MAX_OF_APP = 128;
const MAX_UNPROVEN = 96;
const MAX_UNPROVEN_OF_APP = 24;
/**
 * CHOICE: the number of requests that each app may always have, even if other apps use up the slots of unproven
 * endpoints.
 */
const MIN_OF_APP = 2;

/**
 * CHOICE: the maximum number of concurrent requests to one endpoint. An endpoint that hangs takes two slots until its
 * first timeout, then one. An endpoint that recovers after an hour is not flooded.
 */
const atOnce = { unknown: 2, proven: 16, failing: 1 } as const;
const AT_ONCE_WHILE_SLOW = 4;
const SLOW_MS = 1_000;
/** The maximum number of endpoints whose slots are kept after their worker has ended. */
const MAX_REMEMBERED = 10_000;

interface Counts {
  all: number;
  unproven: number;
}

interface Endpoint {
  readonly id: string;
  appId: string;
  standing: keyof typeof atOnce;
  running: number;
  slow: number;
  readonly waiting: ((slot: Slot | undefined) => void)[];
}

/** A request in progress. */
interface Slot {
  leave(): void;
}

export function createDeliverySlots(): DeliverySlots {
  const total: Counts = { all: 0, unproven: 0 };
  const ofApps = new Map<string, Counts>();
  // `max` would reserve the memory immediately, for every cell of the process.
  const standings = new LRUCache<string, Endpoint['standing']>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: () => 1,
  });
  const queued = new Set<Endpoint>();

  const countsOf = (appId: string): Counts => ofApps.get(appId) ?? { all: 0, unproven: 0 };
  const change = (appId: string, all: number, unproven: number): void => {
    const ofApp = countsOf(appId);
    for (const counts of [total, ofApp]) {
      counts.all += all;
      counts.unproven += unproven;
    }
    if (ofApp.all === 0) ofApps.delete(appId);
    else ofApps.set(appId, ofApp);
  };
  const isProven = ({ standing, slow }: Endpoint): boolean => standing === 'proven' && slow === 0;
  const mayStart = (endpoint: Endpoint): boolean => {
    const { standing, running, slow, appId } = endpoint;
    const ofApp = countsOf(appId);
    const most = slow > 0 ? Math.min(atOnce[standing], AT_ONCE_WHILE_SLOW) : atOnce[standing];
    if (running >= most || total.all >= MAX_REQUESTS || ofApp.all >= MAX_OF_APP) return false;
    if (isProven(endpoint)) return true;
    if (ofApp.unproven >= MAX_UNPROVEN_OF_APP) return false;
    return total.unproven < MAX_UNPROVEN || ofApp.unproven < MIN_OF_APP;
  };
  /** Returns the endpoint whose turn it is. */
  const next = (): Endpoint | undefined => {
    let best: Endpoint | undefined;
    for (const endpoint of queued) {
      if (!mayStart(endpoint)) continue;
      const isFirst = best === undefined || countsOf(endpoint.appId).all < countsOf(best.appId).all;
      if (isFirst) best = endpoint;
    }
    return best;
  };
  const take = (endpoint: Endpoint): Slot => {
    const { appId } = endpoint;
    const wasProven = isProven(endpoint);
    let isSlow = false;
    change(appId, 1, wasProven ? 0 : 1);
    endpoint.running += 1;
    const timer = setTimeout(() => {
      isSlow = true;
      endpoint.slow += 1;
      if (wasProven) change(appId, 0, 1);
    }, SLOW_MS).unref();
    return {
      leave() {
        clearTimeout(timer);
        endpoint.running -= 1;
        if (isSlow) endpoint.slow -= 1;
        change(appId, -1, wasProven && !isSlow ? 0 : -1);
        startWaiting();
      },
    };
  };
  const startWaiting = (): void => {
    for (let endpoint = next(); endpoint !== undefined; endpoint = next()) {
      const start = endpoint.waiting.shift()!;
      // Places the endpoint behind the other endpoints of its app.
      queued.delete(endpoint);
      if (endpoint.waiting.length > 0) queued.add(endpoint);
      start(take(endpoint));
    }
  };
  const waitFor = (endpoint: Endpoint): Promise<Slot | undefined> =>
    new Promise((resolve) => {
      endpoint.waiting.push(resolve);
      queued.add(endpoint);
    });

  return {
    counts: () => ({ ...total }),
    open(id) {
      const endpoint: Endpoint = {
        ...{ id, appId: '', standing: standings.get(id) ?? 'unknown' },
        ...{ running: 0, slow: 0, waiting: [] },
      };
      let isClosed = false;
      return {
        identify(appId, isFailing) {
          endpoint.appId = appId;
          if (isFailing) endpoint.standing = 'failing';
          // The endpoint was enabled again, or another process has reached it.
          else if (endpoint.standing === 'failing') endpoint.standing = 'unknown';
        },
        async enter(send) {
          if (isClosed) return undefined;
          const mustWait = endpoint.waiting.length > 0 || !mayStart(endpoint);
          const slot = mustWait ? await waitFor(endpoint) : take(endpoint);
          if (slot === undefined) return undefined;
          try {
            const sent = await send();
            if (sent !== undefined) {
              endpoint.standing = sent.isDelivered ? 'proven' : 'failing';
              standings.set(endpoint.id, endpoint.standing);
            }
            return sent;
          } finally {
            slot.leave();
          }
        },
        close() {
          isClosed = true;
          queued.delete(endpoint);
          for (const start of endpoint.waiting.splice(0)) start(undefined);
        },
      };
    },
  };
}
