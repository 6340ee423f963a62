import { Client, type Dispatcher } from 'undici';
import {
  type LoadOrder,
  type LoadRequest,
  type LoadResult,
  MAX_CONNECTIONS,
  MAX_SECONDS,
} from './load-order.ts';

// Sends requests from its own process, so that this work is not counted as the server's. Receives one order at a time
// over the IPC channel, and ends with the parent.

const MAX_LATENCIES = 1_000_000;

interface Visit {
  readonly order: LoadOrder;
  readonly endAtMs: number;
  readonly measuredFromMs: number;
  readonly latenciesMs: number[];
  sent: number;
  completed: number;
  refused: number;
  wrong: number;
  firstWrong: string | undefined;
}

async function carryOut(order: LoadOrder): Promise<LoadResult> {
  requireBounded(order);
  const clients = Array.from({ length: order.connections }, (_, index) => {
    const origin = order.origins[index % order.origins.length] as string;
    const tls = order.caPem === undefined ? {} : { connect: { ca: order.caPem } };
    return new Client(origin, { pipelining: 1, ...tls });
  });
  const startedMs = performance.now();
  const visit: Visit = {
    order,
    endAtMs: startedMs + order.seconds * 1000,
    measuredFromMs: startedMs + (order.unmeasuredSeconds ?? 0) * 1000,
    latenciesMs: [],
    sent: 0,
    completed: 0,
    refused: 0,
    wrong: 0,
    firstWrong: undefined,
  };
  await Promise.all(clients.map((client, index) => keepSending(client, visit, index)));
  const elapsedMs = performance.now() - visit.measuredFromMs;
  await Promise.all(clients.map((client) => client.destroy()));
  const { completed, refused, wrong, firstWrong } = visit;
  const sorted = Float64Array.from(visit.latenciesMs).sort();
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { completed, refused, wrong, firstWrong, elapsedMs, p50Ms: at(0.5), p99Ms: at(0.99) };
}

function requireBounded({ origins, seconds, connections, requests }: LoadOrder): void {
  const areLocal = origins.every((origin) => /^https?:\/\/127\.0\.0\.1:\d+$/.test(origin));
  if (!areLocal) throw new Error('a load goes to 127.0.0.1 only');
  if (seconds > MAX_SECONDS || connections > MAX_CONNECTIONS || requests.length === 0) {
    throw new Error('a load is bounded in time and connections, and has requests');
  }
}

function keepSending(client: Client, visit: Visit, index: number): Promise<void> {
  const { perSecond, connections } = visit.order;
  const intervalMs = perSecond === undefined ? 0 : (connections * 1000) / perSecond;
  return new Promise((resolve) => {
    // The connections take turns.
    let dueMs = performance.now() + (intervalMs * index) / connections;
    const next = (): void => {
      const nowMs = performance.now();
      const aheadMs = Math.min(dueMs, visit.endAtMs) - nowMs;
      if (intervalMs > 0 && aheadMs >= 1) {
        setTimeout(next, aheadMs);
        return;
      }
      // A response that was late does not make the next requests come faster.
      dueMs = Math.max(dueMs, performance.now() - intervalMs) + intervalMs;
      if (performance.now() >= visit.endAtMs || visit.wrong > 100) {
        resolve();
        return;
      }
      const request = visit.order.requests[visit.sent % visit.order.requests.length] as LoadRequest;
      visit.sent += 1;
      client.dispatch(optionsOf(request), handlerOf(request, visit, next));
    };
    next();
  });
}

function optionsOf({ method, path, headers, body }: LoadRequest): Dispatcher.DispatchOptions {
  return { method: method as Dispatcher.HttpMethod, path, headers, body: body ?? null };
}

function handlerOf(request: LoadRequest, visit: Visit, next: () => void): Dispatcher.DispatchHandler {
  const startedMs = performance.now();
  let status = 0;
  let saysWhenToRetry = false;
  let excerpt = '';
  const fail = (reason: string): void => {
    visit.wrong += 1;
    visit.firstWrong ??= `${request.method} ${request.path}: ${reason}`;
  };
  return {
    onRequestStart() {},
    onResponseStart(_controller, statusCode, headers) {
      status = statusCode;
      saysWhenToRetry = headers['retry-after'] !== undefined;
    },
    onResponseData(_controller, chunk) {
      if (status !== request.status && excerpt.length < 300) excerpt += chunk.toString('utf8').slice(0, 300);
    },
    onResponseEnd() {
      if (startedMs < visit.measuredFromMs) {
        next();
        return;
      }
      if (status === visit.order.refusedStatus) {
        visit.refused += 1;
        if (!saysWhenToRetry) fail(`${status} without Retry-After`);
        next();
        return;
      }
      visit.completed += 1;
      if (visit.latenciesMs.length < MAX_LATENCIES) visit.latenciesMs.push(performance.now() - startedMs);
      if (status !== request.status) fail(`${status} ${excerpt}`);
      next();
    },
    onResponseError(_controller, error) {
      fail(String(error));
      // Deferred, so that a server that refuses every connection does not cause a recursion.
      setImmediate(next);
    },
  };
}

process.on('message', (order: LoadOrder) => {
  carryOut(order).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
