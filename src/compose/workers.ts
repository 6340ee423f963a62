import type { Worker } from 'node:cluster';
import cluster from 'node:cluster';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { droppedLogLines, type LogOutput, logOf, logOutput } from '../adapters/log.ts';
import { fewArenas, type KeptProcess, keepRunning, type StartedProcess } from '../adapters/processes.ts';
import type { ServeConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import type { SignerKeyStore } from '../keys/signer-client.ts';
import type { MetricValues } from '../observability/server-metrics.ts';
import type { Log } from '../ports/runtime.ts';
import type { WorkerMetrics } from './listen.ts';
import { startProduction } from './serve.ts';

/** Messages from the parent process to a worker of `custos serve --workers`. */
type ToWorker =
  /** Stop like a server that receives SIGTERM. */
  | { readonly kind: 'stop' }
  /** Leave the port to the other workers, then stop. */
  | { readonly kind: 'leave' }
  /** Send your metrics. */
  | { readonly kind: 'metrics'; readonly id: number }
  /** The metrics of all workers, as text. */
  | { readonly kind: 'merged'; readonly id: number; readonly text: string };

/** Messages from a worker to its parent process. */
type FromWorker =
  | { readonly kind: 'ready'; readonly url: string; readonly admin: string | undefined }
  | { readonly kind: 'metrics'; readonly id: number; readonly values: MetricValues }
  /** Collect the metrics of all workers. */
  | { readonly kind: 'merge'; readonly id: number };

/** How long the parent process may take to collect the metrics of all workers. */
const MERGE_MS = 3_000;

/** Runs one worker of `custos serve --workers` until its parent process stops it or ends. */
export async function runWorker(config: ServeConfig, signer: Promise<SignerKeyStore>): Promise<void> {
  const number = cluster.worker?.id;
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;
  let ownMetrics: (() => Promise<MetricValues>) | undefined;
  const ending = Promise.withResolvers<'stop' | 'leave'>();
  const send = (message: FromWorker): void => void process.send?.(message);
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'stop' || message.kind === 'leave') ending.resolve(message.kind);
    else if (message.kind === 'merged') waiting.get(message.id)?.(message.text);
    else if (message.kind === 'metrics')
      void ownMetrics?.().then((values) => send({ kind: 'metrics', id: message.id, values }));
  });
  // The terminal sends these signals to the whole process group. The parent process decides what to do.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const workers: WorkerMetrics = {
    offerMetrics(own) {
      ownMetrics = own;
    },
    async mergedMetrics() {
      lastId += 1;
      const id = lastId;
      const { promise, resolve } = Promise.withResolvers<string>();
      waiting.set(id, resolve);
      send({ kind: 'merge', id });
      const text = await Promise.race([promise, pause(MERGE_MS, '', { ref: false })]);
      waiting.delete(id);
      return text;
    },
  };
  const log = numbered(logOf(config), number);
  const server = await startProduction(shareOf(config), { signer, log, workers });
  send({ kind: 'ready', url: server.baseUrl, admin: server.adminUrl });
  await server.close(await ending.promise);
}

/**
 * Returns one worker's share of the settings. The maximum number of connections is for all workers together, so it is
 * divided. Rate limits are counted in the database, so all workers share them. Each worker has its own pool, and the
 * limits that depend on the pool's size.
 */
function shareOf(config: ServeConfig): ServeConfig {
  const share = (whole: number): number => Math.ceil(whole / config.workers);
  const { total, perAddress } = config.connections;
  return {
    ...config,
    connections: {
      total: share(total),
      perAddress: perAddress === undefined ? undefined : share(perAddress),
    },
  };
}

function numbered(log: Log, worker: number | undefined): Log {
  return {
    debug: (fields, message) => log.debug({ worker, ...fields }, message),
    info: (fields, message) => log.info({ worker, ...fields }, message),
    warn: (fields, message) => log.warn({ worker, ...fields }, message),
    error: (fields, message) => log.error({ worker, ...fields }, message),
  };
}

/**
 * `custos serve --workers N`: this process accepts the connections to the port and to the admin port, and passes them
 * to N workers in turn (node:cluster). The workers do everything else, including TLS. This process has no database
 * connection and handles no request.
 */

/** A group of worker processes that share their ports. */
export interface Workers {
  readonly baseUrl: string;
  readonly adminUrl: string | undefined;
  /** Replaces the workers one by one. If a new worker does not become ready, the remaining old ones stay. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface WorkerProcess extends StartedProcess {
  readonly addresses: Promise<{ readonly url: string; readonly admin: string | undefined }>;
  /** Returns a worker's metrics, or undefined if it does not respond in time. */
  metrics(): Promise<MetricValues | undefined>;
}

/** CHOICE: how long a worker may take to start. */
const START_MS = 60_000;
const METRICS_MS = 1_000;
/** How long a worker may take to end after its drain: more than a server needs to finish its requests and jobs. */
const END_MS = 30_000;
/** Longer lines are forwarded in parts. */
const MAX_LINE_BYTES = 1024 * 1024;

/**
 * Starts the workers.
 *
 * @param args the command line of a worker.
 * @throws StartError if one of them does not start.
 */
export async function startWorkers(config: ServeConfig, args: readonly string[]): Promise<Workers> {
  const { workers: count } = config;
  const log = logOf(config);
  const endMs = config.drainMs + END_MS;
  cluster.setupPrimary({ args: [...args], silent: true });
  let workers: readonly KeptProcess<WorkerProcess>[] = [];
  const merged = async (): Promise<string> => {
    const ofWorkers = await Promise.all(workers.map((each) => each.current()?.metrics()));
    const { mergedText } = await import('../observability/server-metrics.ts');
    const { valuesOfDroppedLines } = await import('../observability/gauges.ts');
    // This process writes the log lines of all workers.
    const own = await valuesOfDroppedLines(droppedLogLines);
    return mergedText([...ofWorkers.filter((metrics) => metrics !== undefined), own]);
  };
  const start = (): WorkerProcess => startWorker({ merged, endMs });
  const started = await Promise.allSettled(
    Array.from({ length: count }, (_, index) => keepRunning({ name: `worker ${index + 1}`, log, start })),
  );
  workers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(workers.map((each) => each.stop()));
  };
  if (workers.length < count) {
    await close();
    throw new StartError('a worker did not start; see its last log lines');
  }
  const { url: baseUrl, admin: adminUrl } = await workers[0]!.current()!.addresses;
  log.info({ url: baseUrl, admin: adminUrl, workers: count }, 'ready');
  let restarting: Promise<void> = Promise.resolve();
  const restartAll = async (): Promise<void> => {
    try {
      for (const each of workers) await each.replace();
      log.info({ workers: count }, 'all workers were replaced');
    } catch (err) {
      log.error({ err }, 'a worker could not be replaced; the others continue');
    }
  };
  return {
    ...{ baseUrl, adminUrl },
    restart() {
      restarting = restarting.then(restartAll);
      return restarting;
    },
    async close() {
      await close();
      log.info({}, 'stopped');
    },
  };
}

function startWorker({ merged, endMs }: { merged(): Promise<string>; endMs: number }): WorkerProcess {
  const worker = cluster.fork(fewArenas);
  const addresses = Promise.withResolvers<{ url: string; admin: string | undefined }>();
  const hasEnded = Promise.withResolvers<string>();
  const asked = new Map<number, (metrics: MetricValues) => void>();
  let lastId = 0;
  const send = (message: ToWorker): void => {
    if (worker.isConnected()) worker.send(message);
  };
  forwardLines(worker.process.stdout, logOutput(1));
  forwardLines(worker.process.stderr, logOutput(2));
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'ready') addresses.resolve(message);
    else if (message.kind === 'metrics') asked.get(message.id)?.(message.values);
    else if (message.kind === 'merge') {
      void merged().then(
        (text) => send({ kind: 'merged', id: message.id, text }),
        () => send({ kind: 'merged', id: message.id, text: '' }),
      );
    }
  });
  worker.once('exit', (code, signal) => {
    const reason = signal === null ? `exit code ${code}` : signal;
    addresses.reject(new Error(`the worker ended: ${reason}`));
    hasEnded.resolve(reason);
  });
  const late = setTimeout(() => kill(worker), START_MS);
  addresses.promise.then(
    () => clearTimeout(late),
    () => clearTimeout(late),
  );
  return {
    addresses: addresses.promise,
    isReady: addresses.promise.then(() => undefined),
    hasEnded: hasEnded.promise,
    async metrics() {
      lastId += 1;
      const id = lastId;
      const { promise, resolve } = Promise.withResolvers<MetricValues>();
      asked.set(id, resolve);
      send({ kind: 'metrics', id });
      const metrics = await Promise.race([promise, pause(METRICS_MS, undefined, { ref: false })]);
      asked.delete(id);
      return metrics;
    },
    retire(why) {
      send({ kind: why === 'replaced' ? 'leave' : 'stop' });
      const timer = setTimeout(() => kill(worker), endMs);
      void hasEnded.promise.then(() => clearTimeout(timer));
    },
  };
}

function kill(worker: Worker): void {
  worker.process.kill('SIGKILL');
}

/** Forwards only complete lines, because parts of lines from two workers in one pipe could be mixed. */
function forwardLines(from: Readable | null, to: LogOutput): void {
  let rest = Buffer.alloc(0);
  from?.on('data', (chunk: Buffer) => {
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = all.length > MAX_LINE_BYTES ? all.length : all.lastIndexOf(0x0a) + 1;
    rest = Buffer.from(all.subarray(end));
    if (end > 0) to.write(all.toString('utf8', 0, end));
  });
  from?.once('end', () => {
    if (rest.length > 0) to.write(`${rest.toString()}\n`);
  });
}
