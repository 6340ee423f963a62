import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import type { Log } from '../ports/runtime.ts';
import type { Mount } from '../server/app.ts';
import { isForeignPage } from '../server/origins.ts';

export interface AdminServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
  /** Rejects while the server cannot serve requests, for example because it cannot reach the database. */
  readonly checkReady: () => Promise<void>;
  readonly log: Log;
  /** Paths that are served by other pipelines. */
  readonly mounts?: readonly Mount[];
}

export interface RunningAdminServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/healthz`, `/readyz`, `/metrics` and the mounts on a separate port, over plain HTTP. */
export function startAdminServer(options: AdminServerOptions): Promise<RunningAdminServer> {
  const server = createServer(adminApp(options));
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

function adminApp({ mounts = [], metrics, checkReady, log }: AdminServerOptions): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('strict routing');
  app.enable('case sensitive routing');
  // In any other environment, express sends the stack trace of an error to the caller.
  app.set('env', 'production');

  for (const { path, handle } of mounts) app.route(path).all(handle);
  app.use(refuseForeignPages, refuseWrites);
  app.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' });
  });
  app.get('/readyz', async (_request, response) => {
    try {
      await checkReady();
      response.json({ status: 'ready' });
    } catch (error) {
      log.warn({ err: error }, 'not ready');
      response.status(503).json({ status: 'not ready' });
    }
  });
  app.get('/metrics', async (_request, response) => {
    const text = await metrics.metrics();
    // Sent as bytes, because express would change the content type of a string.
    response.set('content-type', metrics.contentType).send(Buffer.from(text));
  });
  app.use((_request, response) => {
    response.status(404).json({ error: 'Not found' });
  });
  app.use(answerErrors(log));
  return app;
}

/**
 * CHOICE: requests from pages of other sites get 404, like those to the mounts. Requests without `Origin` may have any
 * `Host`, because probes and scrapers use names for the port that this server does not know.
 */
const refuseForeignPages: RequestHandler = ({ headers }, response, next) => {
  if (isForeignPage(headers)) response.status(404).json({ error: 'Not found' });
  else next();
};

const refuseWrites: RequestHandler = ({ method }, response, next) => {
  if (method === 'GET' || method === 'HEAD') next();
  else response.status(405).json({ error: 'method not allowed' });
};

function answerErrors(log: Log): ErrorRequestHandler {
  return (error, request, response, next) => {
    log.error({ err: error, path: request.url }, 'the admin server failed to handle a request');
    if (response.headersSent) next(error);
    else response.status(500).json({ error: 'Service unavailable.' });
  };
}
