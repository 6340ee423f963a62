import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServerMetrics } from '../observability/server-metrics.ts';
import type { Log } from '../ports/runtime.ts';
import type { Mount } from '../server/app.ts';
import { isForeignPage } from '../server/origins.ts';

export interface AdminServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: Pick<ServerMetrics, 'text' | 'contentType'>;
  /** Rejects while requests cannot be served, e.g. because the database cannot be reached. */
  readonly checkReady: () => Promise<void>;
  readonly log: Log;
  /** Path prefixes handled by other pipelines. */
  readonly mounts?: readonly Mount[];
}

export interface RunningAdminServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/healthz`, `/readyz`, `/metrics` and the mounts, over plain HTTP on a separate port. */
export function startAdminServer(options: AdminServerOptions): Promise<RunningAdminServer> {
  const mounts = options.mounts ?? [];
  const server = createServer((request, response) => {
    const mount = mounts.find(({ prefix }) => request.url?.startsWith(prefix));
    if (mount !== undefined) {
      void mount.handle(request, response).catch((error: unknown) => {
        options.log.error({ err: error, path: request.url }, 'the admin server failed to handle a request');
        response.destroy();
      });
      return;
    }
    void answer(request, options)
      .catch((error: unknown) => {
        options.log.error({ err: error, path: request.url }, 'the admin server failed to handle a request');
        return json(500, { error: 'Service unavailable.' });
      })
      .then(({ status, contentType, text }) => send(response, status, contentType, text));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve({
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}

interface AdminAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/**
 * CHOICE: pages of other sites get 404, as from the mounts. Any `Host` is accepted without `Origin`: probes and scrapers dial
 * the port by names that this server does not know.
 */
async function answer(
  { method, url, headers }: IncomingMessage,
  options: AdminServerOptions,
): Promise<AdminAnswer> {
  if (isForeignPage(headers)) return json(404, { error: 'Not found' });
  if (method !== 'GET' && method !== 'HEAD') return json(405, { error: 'method not allowed' });
  switch (url?.split('?')[0]) {
    case '/healthz':
      return json(200, { status: 'ok' });
    case '/readyz':
      return readiness(options);
    case '/metrics':
      return { status: 200, contentType: options.metrics.contentType, text: await options.metrics.text() };
    default:
      return json(404, { error: 'Not found' });
  }
}

async function readiness({ checkReady, log }: AdminServerOptions): Promise<AdminAnswer> {
  try {
    await checkReady();
    return json(200, { status: 'ready' });
  } catch (error) {
    log.warn({ err: error }, 'not ready');
    return json(503, { status: 'not ready' });
  }
}

function json(status: number, body: object): AdminAnswer {
  return { status, contentType: 'application/json; charset=utf-8', text: JSON.stringify(body) };
}

function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  const isHead = response.req.method === 'HEAD';
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(isHead ? undefined : text);
}
