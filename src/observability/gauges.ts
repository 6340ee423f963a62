import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';
import type { Family, Sample } from './instruments.ts';

// The metrics that are read at each scrape. What could not be read is left out.

/** @param share of the time since the last scrape during which the event loop was busy. */
export function utilization(share: number): Family {
  return shared(
    gauge('custos_event_loop_utilization', 'Busy share of the time since the last scrape.', share),
  );
}

/** @param isHeld whether changes are refused, because the database was restored or may be another one. */
export function held(isHeld: boolean): Family {
  return shared(
    gauge('custos_changes_held', '1 while the changes of a restored database are held.', Number(isHeld)),
  );
}

type ByKind = Readonly<Record<string, number>>;

export function admission(
  counts: { readonly requests: number; readonly waiting: ByKind; readonly refused: ByKind } | undefined,
): Family[] {
  if (counts === undefined) return [];
  return [
    gauge('custos_admission_requests', 'Admitted requests in progress.', counts.requests),
    gauge('custos_admission_waiting', 'Admitted requests that wait for a place.', by('kind', counts.waiting)),
    counter(
      'custos_admission_refusals_total',
      'Requests refused because the server has too much to do.',
      by('kind', counts.refused),
    ),
  ];
}

export function connections(
  counts:
    | {
        readonly most: number;
        readonly busy: number;
        readonly idle: number;
        readonly hung: number;
        readonly waiting: number;
      }
    | undefined,
): Family[] {
  if (counts === undefined) return [];
  const { most, busy, idle, hung, waiting } = counts;
  return [
    gauge('custos_database_connections_max', 'The most connections of the pool.', most),
    gauge(
      'custos_database_connections',
      'Connections of the pool, by state.',
      by('state', { busy, idle, hung }),
    ),
    gauge('custos_database_waiting', 'Callers that wait for a connection.', waiting),
  ];
}

export function backlog(
  read: { readonly lagSeconds: ByKind; readonly deliveries: number } | undefined,
): Family[] {
  if (read === undefined) return [];
  return [
    shared(
      gauge(
        'custos_job_lag_seconds',
        'For how long the oldest work has been due.',
        by('work', read.lagSeconds),
      ),
    ),
    shared(gauge('custos_webhook_deliveries_pending', 'Deliveries that are not finished.', read.deliveries)),
  ];
}

export function heads(
  ages: readonly { readonly caip2: string; readonly ageSeconds: number | undefined }[],
): Family[] {
  const known = ages.flatMap(({ caip2, ageSeconds }): Sample[] =>
    ageSeconds === undefined ? [] : [{ labels: { chain: caip2 }, value: ageSeconds }],
  );
  return [shared(gauge('custos_chain_head_age_seconds', 'Age of the latest block, by chain.', known))];
}

export function inFlight(requests: number): Family {
  return gauge('custos_http_requests_in_flight', 'Requests at work.', requests);
}

export function droppedLines(lines: number): Family {
  return counter('custos_log_lines_dropped_total', 'Lines of the log that could not be written.', [
    { labels: {}, value: lines },
  ]);
}

/** Workers read the same thing, or their sum says nothing. */
function shared(family: Family): Family {
  return family.type === 'histogram' ? family : { ...family, across: 'max' };
}

function gauge(name: string, help: string, samples: readonly Sample[] | number): Family {
  const all = typeof samples === 'number' ? [{ labels: {}, value: samples }] : samples;
  return { name, help, type: 'gauge', samples: all };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: 'counter', samples };
}

function by(label: string, values: ByKind): Sample[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

interface SamplerOptions<T> {
  /** Rejects when it cannot be read. */
  readonly read: () => Promise<T>;
  /** Scrapes within this time share one reading, ms. */
  readonly everyMs: number;
  /** How long a scrape waits for a reading, ms. */
  readonly waitMs: number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Reads something for metrics, such as the database, with limits: scrapes neither multiply the readings nor wait for
 * what does not answer. Undefined if it could not be read in time, so that alerts see that it is absent.
 */
export function sampled<T>({ read, everyMs, waitMs, onFailure }: SamplerOptions<T>) {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let last: T | undefined;
  let current: Promise<void> | undefined;
  const refresh = async (): Promise<void> => {
    try {
      last = await read();
    } catch (error) {
      last = undefined;
      onFailure(error);
    } finally {
      readAtMs = performance.now();
      current = undefined;
    }
  };
  return async (): Promise<T | undefined> => {
    if (performance.now() - readAtMs < everyMs) return last;
    current ??= refresh();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(true), waitMs);
    const isLate = await Promise.race([current.then(() => false), promise]);
    clearTimeout(timer);
    return isLate ? undefined : last;
  };
}

/** Plain data that can be sent to another process. */
export type NodeValues = readonly object[];

/** What prom-client reads of this process: event loop, memory, garbage collection, CPU time, handles. */
export function nodeMetrics(): {
  text(): Promise<string>;
  values(): Promise<NodeValues>;
  readonly contentType: string;
} {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    text: () => registry.metrics(),
    values: () => registry.getMetricsAsJSON(),
    contentType: registry.contentType,
  };
}

/** Those of several processes: added, or joined as prom-client says for each. */
export function mergeNodeMetrics(ofProcesses: readonly NodeValues[]): Promise<string> {
  // The type of the parameter is that of prom-client's own cluster support; its documentation says that it takes these.
  return AggregatorRegistry.aggregate(ofProcesses as never).metrics();
}
