import cluster from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import { logOf } from '../../adapters/log.ts';
import type { SignerVault } from '../../adapters/signer/signer-vault.ts';
import type { ServeConfig } from '../../config.ts';
import type { MetricValues } from '../../metrics/merge.ts';
import type { Log } from '../../ports/log.ts';
import type { WorkerMetrics } from '../listen.ts';
import { startProduction } from '../production.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** How long the parent process may take to collect the metrics of all workers. */
const MERGE_MS = 3_000;

/** Runs one worker of `custos serve --workers` until its parent process stops it, or ends. */
export async function runWorker(config: ServeConfig, signer: Promise<SignerVault>): Promise<void> {
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
  // The terminal sends these to the whole group of processes; the parent process decides.
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
 * The part of the settings for one worker. Connections are limited for all workers together. Rate limits are counted in
 * the database, so all workers share them. The pool, and what is limited by it, is each worker's own.
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
