import { nodeMetrics } from './gauges.ts';
import {
  type Counter,
  counterOf,
  type Family,
  type Histogram,
  histogramOf,
  type Instrument,
  longTimes,
  type MetricValues,
  prometheusText,
  shortTimes,
} from './instruments.ts';

/** Reads metrics at each scrape. */
type ReadFamilies = () => readonly Family[] | Promise<readonly Family[]>;

/** The metrics of one server: the functions that feed them, and their text. */
export interface ServerMetrics {
  /** Called for every answered request. `code`: the error code of a refusal. */
  request(operation: string, status: number, durationMs: number, code: string | undefined): void;
  /** Called for every request that a rate limit refuses. `limit`: the name of the limit. */
  rateLimited(limit: string): void;
  /** Called for every batch of a job. */
  job(name: string, durationMs: number, hasFailed: boolean): void;
  /** Called for every use of the key vault. */
  vault(call: string, durationMs: number, hasFailed: boolean): void;
  /** Called for every call of a node. */
  node(chain: string, durationMs: number, hasFailed: boolean): void;
  /** Called each time that the nodes of a chain contradict each other. */
  disagreement(chain: string): void;
  /** Called for every attempt to deliver an event. */
  webhook(result: string, durationMs: number): void;
  databaseError(kind: string): void;
  /** Called for every transaction that wrote. */
  transaction(result: 'committed' | 'rolled back', durationMs: number): void;
  /** Adds metrics that are read at each scrape. */
  add(read: ReadFamilies): void;
  families(): Promise<readonly Family[]>;
  /** Everything that `text` contains, to be merged with that of other processes. */
  values(): Promise<MetricValues>;
  text(): Promise<string>;
  readonly contentType: string;
}

/** Creates the metrics of one server. The names are documented in docs/monitoring.md. */
export function createServerMetrics(): ServerMetrics {
  const requests = counterOf({
    name: 'custos_http_requests_total',
    help: 'Requests answered, by operation and status.',
    labels: ['operation', 'status'],
  });
  const durations = histogramOf({
    name: 'custos_http_request_duration_seconds',
    help: 'Time from the head of a request to its response, by operation and status class.',
    labels: ['operation', 'class'],
    bounds: shortTimes,
  });
  const errors = counterOf({
    name: 'custos_http_errors_total',
    help: 'Requests refused, by error code and status class.',
    labels: ['code', 'class'],
  });
  const rateLimits = counterOf({
    name: 'custos_rate_limit_refusals_total',
    help: 'Requests refused by a rate limit, by the name of the limit.',
    labels: ['limit'],
  });
  const jobs = timed({ name: 'custos_job_duration_seconds', help: 'Batches of background jobs.' }, 'job');
  const vaults = timed({ name: 'custos_key_vault_duration_seconds', help: 'Uses of the key vault.' }, 'call');
  const nodes = timed(
    { name: 'custos_chain_call_duration_seconds', help: 'Calls of the nodes of a chain.' },
    'chain',
  );
  const disagreements = counterOf({
    name: 'custos_chain_disagreements_total',
    help: 'Answers of the nodes of a chain that contradict each other.',
    labels: ['chain'],
  });
  const webhooks = histogramOf({
    name: 'custos_webhook_attempt_duration_seconds',
    help: 'Attempts to deliver an event, by result.',
    labels: ['result'],
    bounds: longTimes,
  });
  const databaseErrors = counterOf({
    name: 'custos_database_errors_total',
    help: 'Statements that failed, by kind: unavailable, timeout, conflict, constraint, other.',
    labels: ['kind'],
  });
  const transactions = histogramOf({
    name: 'custos_database_transaction_duration_seconds',
    help: 'Transactions that wrote, from their begin to their end, by result.',
    labels: ['result'],
    bounds: shortTimes,
  });
  const instruments = [requests, durations, errors, rateLimits, jobs, vaults, nodes]
    .map(({ family }) => family)
    .concat([webhooks, disagreements, databaseErrors, transactions].map(({ family }) => family));
  const added: ReadFamilies[] = [];
  const observeRequest = requestObserver(requests, durations);
  const node = nodeMetrics();
  const families = async (): Promise<readonly Family[]> => {
    const read = await Promise.all(added.map((each) => each()));
    return [...instruments.map((family) => family()), ...read.flat()];
  };
  return {
    request(operation, status, durationMs, code) {
      observeRequest(operation, status, durationMs);
      if (code !== undefined) errors.with(code, classOf(status)).add();
    },
    rateLimited: (limit) => rateLimits.with(limit).add(),
    job: jobs.observe,
    vault: vaults.observe,
    node: nodes.observe,
    disagreement: (chain) => disagreements.with(chain).add(),
    webhook: (result, durationMs) => webhooks.with(result).observe(durationMs / 1000),
    databaseError: (kind) => databaseErrors.with(kind).add(),
    transaction: (result, durationMs) => transactions.with(result).observe(durationMs / 1000),
    add: (read) => void added.push(read),
    families,
    values: async () => ({ families: await families(), node: await node.values() }),
    text: async () => prometheusText(await families()) + (await node.text()),
    contentType: node.contentType,
  };
}

/** The instruments of one operation, found once. */
interface OfOperation {
  readonly counters: Map<number, Counter>;
  readonly histograms: Map<string, Histogram>;
}

// HOT: two look-ups and two additions per request.
function requestObserver(requests: Instrument<Counter>, durations: Instrument<Histogram>) {
  const known = new Map<string, OfOperation>();
  const find = (operation: string): OfOperation => {
    const found = known.get(operation);
    if (found !== undefined) return found;
    const made: OfOperation = { counters: new Map(), histograms: new Map() };
    known.set(operation, made);
    return made;
  };
  return (operation: string, status: number, durationMs: number): void => {
    const { counters, histograms } = find(operation);
    let counter = counters.get(status);
    if (counter === undefined) {
      counter = requests.with(operation, String(status));
      counters.set(status, counter);
    }
    counter.add();
    const statusClass = classOf(status);
    let histogram = histograms.get(statusClass);
    if (histogram === undefined) {
      histogram = durations.with(operation, statusClass);
      histograms.set(statusClass, histogram);
    }
    histogram.observe(durationMs / 1000);
  };
}

const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

function classOf(status: number): string {
  return classes[Math.floor(status / 100) - 1] ?? '5xx';
}

/** Calls of something, by its name and whether they failed. */
function timed(head: { readonly name: string; readonly help: string }, label: string) {
  const histogram = histogramOf({ ...head, labels: [label, 'result'], bounds: longTimes });
  return {
    family: histogram.family,
    observe: (name: string, durationMs: number, hasFailed: boolean): void =>
      histogram.with(name, hasFailed ? 'failed' : 'ok').observe(durationMs / 1000),
  };
}
