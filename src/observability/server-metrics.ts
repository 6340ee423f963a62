import { AggregatorRegistry, Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

/** Upper bounds in seconds. Most operations take less than 5 ms. The upper buckets show a slow database. */
const shortTimes = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Upper bounds in seconds, for calls of other systems and batches of jobs. */
const longTimes = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** All metrics of one process at one moment, as plain data that another process can merge. */
export type MetricValues = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** The metrics of one server, and the functions that feed them. */
export interface ServerMetrics {
  /** The server's own instruments, the metrics of Node, and gauges that are read at each scrape. */
  readonly registry: Registry;
  /** Called after every response. `code` is the error code of an error response. */
  request(operation: string, status: number, durationMs: number, code: string | undefined): void;
  /** Called for every request that a rate limit refuses. `limit` is the name of the limit. */
  rateLimited(limit: string): void;
  /** Called for every batch of a job. */
  job(name: string, durationMs: number, hasFailed: boolean): void;
  keyStore(call: string, durationMs: number, hasFailed: boolean): void;
  /** Called for every call of a node. */
  node(chain: string, durationMs: number, hasFailed: boolean): void;
  /** Called each time that the nodes of a chain contradict each other. */
  disagreement(chain: string): void;
  /** Called for every attempt to deliver an event. */
  webhook(result: string, durationMs: number): void;
  databaseError(kind: string): void;
  /** Called for every transaction that wrote. */
  transaction(result: 'committed' | 'rolled back', durationMs: number): void;
}

/**
 * Creates the metrics of one server. docs/monitoring.md documents their names.
 *
 * INVARIANT: every label has a bounded set of values, such as the operations of the API, so that no input makes the
 * metrics grow.
 */
export function createServerMetrics(): ServerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    registers,
    name: 'custos_http_requests_total',
    help: 'Requests answered, by operation and status.',
    labelNames: ['operation', 'status'],
  });
  const durations = new Histogram({
    registers,
    name: 'custos_http_request_duration_seconds',
    help: 'Time from the head of a request to its response, by operation and status class.',
    labelNames: ['operation', 'class'],
    buckets: shortTimes,
  });
  const errors = new Counter({
    registers,
    name: 'custos_http_errors_total',
    help: 'Requests refused, by error code and status class.',
    labelNames: ['code', 'class'],
  });
  const rateLimits = new Counter({
    registers,
    name: 'custos_rate_limit_refusals_total',
    help: 'Requests refused by a rate limit, by the name of the limit.',
    labelNames: ['limit'],
  });
  const jobs = new Histogram({
    registers,
    name: 'custos_job_duration_seconds',
    help: 'Batches of background jobs.',
    labelNames: ['job', 'result'],
    buckets: longTimes,
  });
  const keyStoreCalls = new Histogram({
    registers,
    name: 'custos_key_store_duration_seconds',
    help: 'Uses of the key store.',
    labelNames: ['call', 'result'],
    buckets: longTimes,
  });
  const nodeCalls = new Histogram({
    registers,
    name: 'custos_chain_call_duration_seconds',
    help: 'Calls of the nodes of a chain.',
    labelNames: ['chain', 'result'],
    buckets: longTimes,
  });
  const webhooks = new Histogram({
    registers,
    name: 'custos_webhook_attempt_duration_seconds',
    help: 'Attempts to deliver an event, by result.',
    labelNames: ['result'],
    buckets: longTimes,
  });
  const disagreements = new Counter({
    registers,
    name: 'custos_chain_disagreements_total',
    help: 'Answers of the nodes of a chain that contradict each other.',
    labelNames: ['chain'],
  });
  const databaseErrors = new Counter({
    registers,
    name: 'custos_database_errors_total',
    help: 'Statements that failed, by kind: unavailable, timeout, conflict, constraint, other.',
    labelNames: ['kind'],
  });
  const transactions = new Histogram({
    registers,
    name: 'custos_database_transaction_duration_seconds',
    help: 'Transactions that wrote, from their begin to their end, by result.',
    labelNames: ['result'],
    buckets: shortTimes,
  });
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    request(operation, status, durationMs, code) {
      const statusClass = classOf(status);
      requests.inc({ operation, status });
      durations.observe({ operation, class: statusClass }, durationMs / 1000);
      if (code !== undefined) errors.inc({ code, class: statusClass });
    },
    rateLimited: (limit) => rateLimits.inc({ limit }),
    job: (job, durationMs, hasFailed) =>
      jobs.observe({ job, result: resultOf(hasFailed) }, durationMs / 1000),
    keyStore: (call, durationMs, hasFailed) =>
      keyStoreCalls.observe({ call, result: resultOf(hasFailed) }, durationMs / 1000),
    node: (chain, durationMs, hasFailed) =>
      nodeCalls.observe({ chain, result: resultOf(hasFailed) }, durationMs / 1000),
    disagreement: (chain) => disagreements.inc({ chain }),
    webhook: (result, durationMs) => webhooks.observe({ result }, durationMs / 1000),
    databaseError: (kind) => databaseErrors.inc({ kind }),
    transaction: (result, durationMs) => transactions.observe({ result }, durationMs / 1000),
  };
}

const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

function classOf(status: number): string {
  return classes[Math.floor(status / 100) - 1] ?? '5xx';
}

function resultOf(hasFailed: boolean): string {
  return hasFailed ? 'failed' : 'ok';
}

/**
 * Merges the metrics of several processes into one text. Values are added, except where the metric says otherwise. If
 * all processes read the same fact, the largest value counts.
 */
export function mergedText(ofProcesses: readonly MetricValues[]): Promise<string> {
  return AggregatorRegistry.aggregate([...ofProcesses]).metrics();
}
