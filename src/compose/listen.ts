import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { AdminServerOptions } from '../admin/admin-server.ts';
import type { SandboxConfig, ServeConfig } from '../config/config.ts';
import { packageRoot } from '../config/package-root.ts';
import type { MetricValues, ServerMetrics } from '../observability/server-metrics.ts';
import type { Log } from '../ports/runtime.ts';
import { type AppOptions, createApp, type Mount } from '../server/app.ts';
import type { RateLimiter, RateLimitOptions } from '../server/rate-limit.ts';
import {
  type ConnectionLimits,
  type RunningServer,
  type ServerOptions,
  startServer,
} from '../server/server.ts';
import { watchRequests } from './monitoring.ts';

/** The parts of a composition that listening needs. */
interface ListenOptions
  extends Pick<
    AppOptions,
    | 'handlers'
    | 'injectFault'
    | 'authenticate'
    | 'transport'
    | 'admission'
    | 'rateLimiter'
    | 'clock'
    | 'timeOf'
    | 'log'
    | 'newRequestId'
    | 'isHostSigned'
    | 'mounts'
    | 'findPage'
    | 'refusals'
    | 'loggedShare'
    | 'tracer'
    | 'record'
    | 'recordDenial'
    | 'reference'
  > {
  readonly config: Pick<SandboxConfig, 'host' | 'port' | 'adminPort' | 'prefix' | 'publicUrls'>;
  readonly adminHost: string;
  readonly connections?: ConnectionLimits | undefined;
  readonly upgrade?: ServerOptions['upgrade'];
  /** The key and certificate in PEM. Undefined if a proxy terminates TLS. */
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
  /** Additional paths of the admin port. */
  readonly adminMounts?: readonly Mount[];
  /** The metrics that the admin port serves. */
  readonly metrics: ServerMetrics | undefined;
  /** Rejects while the server cannot serve requests. */
  readonly checkReady: () => Promise<void>;
  /** Set if the process is one of several workers that share the ports. */
  readonly workers?: WorkerMetrics | undefined;
  /**
   * How long a stopping server still accepts requests, so that load balancers can notice that it is no longer ready.
   */
  readonly drainMs?: number;
}

/** Exchanges metrics with the other workers, through the parent process. */
export interface WorkerMetrics {
  offerMetrics(own: () => Promise<MetricValues>): void;
  /** Returns the metrics of all workers, or an empty string if they could not be collected. */
  mergedMetrics(): Promise<string>;
}

export interface Listening extends Pick<RunningServer, 'setCertificate'> {
  /** The URL for clients on this machine, without a trailing slash. */
  readonly baseUrl: string;
  readonly adminUrl: string | undefined;
  /**
   * Stops accepting requests and finishes those in progress. With `leave`, a worker leaves a shared port to the other
   * workers: it stops accepting connections immediately, and the clients of its open connections reconnect to other
   * workers with their next request.
   */
  close(how?: 'stop' | 'leave'): Promise<void>;
}

/**
 * Creates the rate limiter of a server, or returns undefined if requests are not counted. Its code is loaded only if
 * it is needed.
 */
export async function rateLimiterFor(
  options: RateLimitOptions | undefined,
  metrics: ServerMetrics | undefined,
): Promise<RateLimiter | undefined> {
  if (options === undefined) return undefined;
  const { createRateLimiter } = await import('../server/rate-limit.ts');
  return createRateLimiter({ ...options, onRefused: metrics?.rateLimited });
}

/** Opens the port, and the admin port if it is configured. */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { config, tls, metrics, workers } = options;
  let baseUrl: string | undefined;
  let isStopping = false;
  const checkReady = async (): Promise<void> => {
    if (isStopping) throw new Error('the server is about to stop');
    await options.checkReady();
  };
  const handler = await createApp({
    ...options,
    prefix: config.prefix,
    packageRoot: packageRoot(),
    publicBaseUrls: () =>
      baseUrl === undefined || !options.isHostSigned ? config.publicUrls : [...config.publicUrls, baseUrl],
    observe: metrics?.request,
  });
  const server = await startServer({ ...options, ...config, tls, handler });
  await watchRequests(metrics, server);
  baseUrl = `${tls === undefined ? 'http' : 'https'}://${hostInUrl(config.host)}:${server.port}`;
  try {
    const admin =
      metrics === undefined || config.adminPort === undefined
        ? undefined
        : await startAdmin({
            ...options,
            checkReady,
            host: options.adminHost,
            port: config.adminPort,
            metrics: workers === undefined ? metrics.registry : mergedMetrics(metrics, workers),
            mounts: options.adminMounts ?? [],
          });
    const adminUrl = admin === undefined ? undefined : `http://${hostInUrl(options.adminHost)}:${admin.port}`;
    return {
      baseUrl,
      adminUrl,
      setCertificate: server.setCertificate,
      async close(how = 'stop') {
        isStopping = true;
        if (how === 'leave') {
          await Promise.all([admin?.close(), server.close(options.drainMs)]);
          return;
        }
        if (admin !== undefined && options.drainMs !== undefined) await pause(options.drainMs);
        // The admin port closes last, because it reports requests that are still in progress.
        await server.close();
        await admin?.close();
      },
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

function mergedMetrics({ registry }: ServerMetrics, workers: WorkerMetrics): AdminServerOptions['metrics'] {
  workers.offerMetrics(() => registry.getMetricsAsJSON());
  return {
    contentType: registry.contentType,
    metrics: async () => (await workers.mergedMetrics()) || registry.metrics(),
  };
}

/** Starts the admin server. Its code is loaded only if the admin port is configured. */
async function startAdmin(options: AdminServerOptions) {
  const { startAdminServer } = await import('../admin/admin-server.ts');
  return startAdminServer(options);
}

/**
 * Returns the host for URLs that are used on this machine. A wildcard address becomes loopback, and an IPv6 address
 * gets brackets.
 */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIP(host) === 6 ? `[${host}]` : host;
}

type Certificate = NonNullable<ServeConfig['tls']>;

/** CHOICE: how often the certificate's files are read again, so that a renewal takes effect without a signal. */
const EVERY_MS = 60_000;

interface CertificateFiles {
  /** The certificate in use. */
  readonly current: Certificate;
  /** Reads the files. Throws if they cannot be used, for example while only one of them has been replaced. */
  readonly read: () => Certificate | undefined;
  /** Makes new connections use a certificate. */
  readonly use: (certificate: Certificate) => void;
  readonly log: Log;
}

/** Watches the certificate's files. If a new certificate cannot be used, logs the error and keeps the current one. */
export function followCertificate({ current, read, use, log }: CertificateFiles) {
  let used = current;
  let reported: string | undefined;
  const check = (): boolean => {
    try {
      const found = read();
      if (found === undefined || (found.cert === used.cert && found.key === used.key)) return false;
      use(found);
      used = found;
      reported = undefined;
      log.info(
        { expires: new X509Certificate(found.cert).validToDate.toISOString() },
        'the certificate was replaced',
      );
      return true;
    } catch (err) {
      const { message } = err as Error;
      if (message !== reported)
        log.error({ err }, 'the new certificate cannot be used; keeping the current one');
      reported = message;
      return false;
    }
  };
  const timer = setInterval(check, EVERY_MS).unref();
  return {
    /** Reads the files immediately. */
    reload(): void {
      reported = undefined;
      if (!check() && reported === undefined) log.info({}, 'the certificate has not changed');
    },
    close: () => clearInterval(timer),
  };
}
