import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricValues } from './server-metrics.ts';

// The metrics that are read at each scrape. A metric that cannot be read has no value, so that alerts notice its
// absence.

/** A number for a metric without a label, or the numbers by the value of the label. */
type Reading = number | Readonly<Record<string, number>>;

interface ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly label?: string;
  /**
   * Whether all processes of a server read the same fact, so that the largest value counts. By default, their values
   * are added.
   */
  readonly isShared?: boolean;
  /** Returns undefined when the value cannot be read. */
  read(): Reading | undefined | Promise<Reading | undefined>;
}

function addGauge(registry: Registry, { read, ...metric }: ReadMetric): void {
  addGaugeOfCells(registry, { ...metric, isLabelled: false, sources: () => [{ cell: '', read }] });
}

interface MetricOfCells extends Omit<ReadMetric, 'read'> {
  /** Whether the metric has the label `cell`. If not, it has one source. */
  readonly isLabelled: boolean;
  sources(): readonly { readonly cell: string; readonly read: ReadMetric['read'] }[];
}

function addGaugeOfCells(
  registry: Registry,
  { name, help, label, isShared, isLabelled, sources }: MetricOfCells,
): void {
  const gauge = new Gauge({
    ...{ name, help, registers: [registry], aggregator: isShared === true ? 'max' : 'sum' },
    labelNames: [...(isLabelled ? ['cell'] : []), ...(label === undefined ? [] : [label])],
    async collect() {
      const readings = await Promise.all(
        sources().map(async ({ cell, read }) => ({ of: isLabelled ? { cell } : {}, reading: await read() })),
      );
      gauge.reset();
      if (readings.length === 0 && !isLabelled && label === undefined) gauge.remove();
      for (const { of, reading } of readings) {
        if (typeof reading === 'number') gauge.set(of, reading);
        else if (label === undefined && isLabelled) gauge.remove(of);
        else if (label === undefined) gauge.remove();
        else
          for (const [key, value] of Object.entries(reading ?? {})) gauge.set({ ...of, [label]: key }, value);
      }
    },
  });
}

/** Adds a counter whose total is counted elsewhere. */
function addCounter(registry: Registry, { name, help, label, read }: ReadMetric): void {
  const counter = new Counter({
    ...{ name, help, registers: [registry], labelNames: label === undefined ? [] : [label] },
    async collect() {
      const reading = await read();
      counter.reset();
      if (typeof reading === 'number') counter.inc(reading);
      else if (label !== undefined)
        for (const [name, value] of Object.entries(reading ?? {})) counter.inc({ [label]: name }, value);
    },
  });
}

/**
 * Adds the utilization of the event loop.
 * @param read returns the share of the time since the last scrape during which the event loop was busy.
 */
export function addUtilization(registry: Registry, read: () => number): void {
  addGauge(registry, {
    name: 'custos_event_loop_utilization',
    help: 'Busy share of the time since the last scrape.',
    isShared: true,
    read,
  });
}

type ByKind = Readonly<Record<string, number>>;

export function addAdmission(
  registry: Registry,
  counts: () => { readonly requests: number; readonly waiting: ByKind; readonly refused: ByKind },
): void {
  addGauge(registry, {
    name: 'custos_admission_requests',
    help: 'Admitted requests in progress.',
    read: () => counts().requests,
  });
  addGauge(registry, {
    name: 'custos_admission_waiting',
    help: 'Admitted requests that wait for a permit.',
    label: 'kind',
    read: () => counts().waiting,
  });
  addCounter(registry, {
    name: 'custos_admission_refusals_total',
    help: 'Requests refused because the server has too much to do.',
    label: 'kind',
    read: () => counts().refused,
  });
}

interface ConnectionCounts {
  readonly most: number;
  readonly busy: number;
  readonly idle: number;
  readonly hung: number;
  readonly waiting: number;
}

/** What the metrics need to know about the database of one cell. */
export interface CellFacts {
  readonly cell: string;
  /** Counts the connections of the pool. Undefined for a database without a pool. */
  readonly connections?: (() => ConnectionCounts) | undefined;
  /** Returns whether changes are refused, because the database was restored or may be another one. */
  readonly isHeld?: (() => boolean) | undefined;
  readonly readBacklog: () => Promise<
    { readonly lagSeconds: ByKind; readonly deliveries: number } | undefined
  >;
}

/**
 * Adds the metrics of databases.
 *
 * @param cells returns the open cells.
 * @param isLabelled whether the metrics have the label `cell`.
 */
export function addCells(registry: Registry, cells: () => readonly CellFacts[], isLabelled: boolean): void {
  const add = (
    {
      read,
      ...metric
    }: Omit<ReadMetric, 'read'> & { read(facts: CellFacts): ReturnType<ReadMetric['read']> },
    isOf: (facts: CellFacts) => boolean = () => true,
  ): void =>
    addGaugeOfCells(registry, {
      ...metric,
      isLabelled,
      sources: () =>
        cells()
          .filter(isOf)
          .map((facts) => ({ cell: facts.cell, read: () => read(facts) })),
    });
  const hasPool = ({ connections }: CellFacts): boolean => connections !== undefined;
  add(
    {
      name: 'custos_database_connections_max',
      help: 'The most connections of the pool.',
      read: ({ connections }) => connections?.().most,
    },
    hasPool,
  );
  add(
    {
      name: 'custos_database_connections',
      help: 'Connections of the pool, by state.',
      label: 'state',
      read({ connections }) {
        const { busy, idle, hung } = connections!();
        return { busy, idle, hung };
      },
    },
    hasPool,
  );
  add(
    {
      name: 'custos_database_waiting',
      help: 'Callers that wait for a connection.',
      read: ({ connections }) => connections?.().waiting,
    },
    hasPool,
  );
  add(
    {
      name: 'custos_changes_held',
      help: '1 while the changes of a restored database are held.',
      isShared: true,
      read: ({ isHeld }) => Number(isHeld?.()),
    },
    ({ isHeld }) => isHeld !== undefined,
  );
  add({
    name: 'custos_job_lag_seconds',
    help: 'For how long the oldest work has been due.',
    label: 'work',
    isShared: true,
    read: async ({ readBacklog }) => (await readBacklog())?.lagSeconds,
  });
  add({
    name: 'custos_webhook_deliveries_pending',
    help: 'Deliveries that are not finished.',
    isShared: true,
    read: async ({ readBacklog }) => (await readBacklog())?.deliveries,
  });
}

/** Adds the metric of the cells that cannot serve their apps. */
export function addUnavailableCells(registry: Registry, read: () => Readonly<Record<string, number>>): void {
  addGauge(registry, {
    name: 'custos_cell_unavailable',
    help: '1 while the apps of the cell cannot be served.',
    label: 'cell',
    isShared: true,
    read,
  });
}

interface ReadHead {
  readonly caip2: string;
  /** Returns the age of the newest block in seconds; undefined when the nodes do not respond. */
  readAge(): Promise<number | undefined>;
}

export function addHeads(registry: Registry, heads: readonly ReadHead[]): void {
  addGauge(registry, {
    name: 'custos_chain_head_age_seconds',
    help: 'Age of the latest block, by chain.',
    label: 'chain',
    isShared: true,
    async read() {
      const ages = await Promise.all(
        heads.map(async ({ caip2, readAge }) => ({ caip2, age: await readAge() })),
      );
      return Object.fromEntries(ages.flatMap(({ caip2, age }) => (age === undefined ? [] : [[caip2, age]])));
    },
  });
}

export function addRequestsInFlight(registry: Registry, read: () => number): void {
  addGauge(registry, { name: 'custos_http_requests_in_flight', help: 'Requests in progress.', read });
}

export function addDroppedLines(registry: Registry, read: () => number): void {
  addCounter(registry, {
    name: 'custos_log_lines_dropped_total',
    help: 'Lines of the log that could not be written.',
    read,
  });
}

/** Returns the only metric of a process that writes the log of other processes. */
export function valuesOfDroppedLines(read: () => number): Promise<MetricValues> {
  const registry = new Registry();
  addDroppedLines(registry, read);
  return registry.getMetricsAsJSON();
}

interface SamplerOptions<T> {
  /** Reads the source. Rejects when it cannot be read. */
  readonly read: () => Promise<T>;
  /** Scrapes within this time share one reading, in ms. */
  readonly everyMs: number;
  /** How long a scrape waits for a reading, in ms. */
  readonly waitMs: number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Returns a reader of a source for metrics, such as the database, with limits. Scrapes share a reading, and none waits
 * longer than `waitMs`. The reader returns undefined if there is no reading by then.
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
