import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { decodeContent, type SeenExchange } from './judge-exchange.ts';

/** A server to which requests are forwarded. */
export interface Upstream {
  readonly url: URL;
  /** The PEM of an authority to trust, in addition to those of Node.js. */
  readonly ca: string | undefined;
  /** Replaces the `host` that the client sent, for a server that shares its address with other servers. */
  readonly host: string | undefined;
}

export interface ProxyOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly key: string; readonly cert: string };
  readonly upstream: Upstream;
  readonly limits?: Partial<ProxyLimits>;
  /** Called after the response was forwarded. `rawHeaders` are the headers as the client sent them. */
  readonly onExchange: (exchange: SeenExchange, timing: ExchangeTiming) => void;
  /** Called when the server did not respond. */
  readonly onFailure: (
    request: { readonly method: string; readonly target: string },
    message: string,
  ) => void;
}

export interface ExchangeTiming {
  readonly rawHeaders: readonly string[];
  readonly startedMs: number;
  readonly durationMs: number;
}

export interface ProxyLimits {
  readonly bodyBytes: number;
  /** The maximum size of a decoded body. */
  readonly decodedBytes: number;
  readonly timeoutMs: number;
  readonly connections: number;
}

export const defaultLimits: ProxyLimits = {
  bodyBytes: 64 * 1024 * 1024,
  decodedBytes: 64 * 1024 * 1024,
  timeoutMs: 60_000,
  connections: 200,
};

export interface RunningProxy {
  readonly port: number;
  close(): Promise<void>;
}

// Headers that concern only one connection (RFC 9110 §7.6.1).
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Starts a proxy that forwards requests and responses byte for byte, and reports both. It keeps `Host` and the path
 * as sent, because clients sign them.
 */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const limits = { ...defaultLimits, ...options.limits };
  const send = openUpstream(options.upstream, limits);
  const judging = new Set<Promise<void>>();
  const server = createTlsServer(
    { ...options.tls, requestTimeout: limits.timeoutMs },
    (request, response) => {
      void pass(request, response, { options, limits, send, judging });
    },
  );
  server.maxConnections = limits.connections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          send.close();
          void Promise.allSettled(judging).then(() => resolve());
        });
        server.closeIdleConnections();
        // Connections that are still open after a second are closed.
        setTimeout(() => server.closeAllConnections(), 1_000).unref();
      }),
  };
}

interface Passing {
  readonly options: ProxyOptions;
  readonly limits: ProxyLimits;
  readonly send: ReturnType<typeof openUpstream>;
  /** The checks that have not finished yet. */
  readonly judging: Set<Promise<void>>;
}

async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { options, limits, send, judging }: Passing,
): Promise<void> {
  const { method = 'GET', url: target = '/', headers } = request;
  const startedMs = performance.now();
  try {
    const requestBody = await readBounded(request, limits.bodyBytes).catch((error: Error) => error);
    if (requestBody instanceof Error) {
      response.writeHead(413, { 'content-type': 'application/json', connection: 'close' });
      response.end(JSON.stringify({ error: `this proxy refused the request: ${requestBody.message}` }));
      return;
    }
    const answer = await send.request({ method, target, headers, body: requestBody });
    response.writeHead(answer.status, {
      ...withoutHops(answer.headers),
      ...(hasContent(method, answer.status) ? { 'content-length': String(answer.body.length) } : {}),
    });
    response.end(answer.body);
    const durationMs = performance.now() - startedMs;
    const timing = {
      ...{ rawHeaders: request.rawHeaders, durationMs },
      startedMs: performance.timeOrigin + startedMs,
    };
    const shown = reportExchange({ method, target, headers, body: requestBody }, answer, {
      timing,
      options,
      limits,
    });
    judging.add(shown);
    await shown.finally(() => judging.delete(shown));
  } catch (error) {
    const message = failureText(error as NodeJS.ErrnoException);
    options.onFailure({ method, target }, message);
    const text = JSON.stringify({ error: `the server behind this proxy did not answer: ${message}` });
    if (response.headersSent) response.destroy();
    else response.writeHead(502, { 'content-type': 'application/json' }).end(text);
  }
}

async function reportExchange(
  { method, target, headers, body }: Sent,
  answer: UpstreamAnswer,
  { timing, options, limits }: Pick<Passing, 'options' | 'limits'> & { readonly timing: ExchangeTiming },
): Promise<void> {
  const encoding = answer.headers['content-encoding'];
  const content = await decodeContent(answer.body, encoding, limits.decodedBytes);
  options.onExchange(
    {
      ...{ method, target, requestHeaders: headers, requestBody: body },
      ...{ status: answer.status, responseHeaders: answer.headers },
      ...{ responseBody: content.body, contentFault: content.fault },
    },
    timing,
  );
}

function failureText({ code = '', message }: NodeJS.ErrnoException): string {
  return /CERT|SIGNATURE/.test(code) ? `${message}; --target-ca names its certificate authority` : message;
}

/**
 * Returns whether a response has a body. Responses to HEAD, and responses 204 and 304, end after their headers: their
 * `content-length` describes the body that a GET would have returned (RFC 9110 §8.6).
 */
function hasContent(method: string, status: number): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304;
}

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Opens a client that sends requests to one server over keep-alive connections. */
export function openUpstream({ url, ca, host }: Upstream, limits: ProxyLimits = defaultLimits) {
  const isTls = url.protocol === 'https:';
  const settings = { keepAlive: true, maxSockets: limits.connections };
  const agent = isTls
    ? new HttpsAgent({ ...settings, ...(ca === undefined ? {} : { ca }) })
    : new HttpAgent(settings);
  const base = url.pathname.replace(/\/$/, '');
  return {
    close: () => agent.destroy(),
    request: ({ method, target, headers, body }: Sent): Promise<UpstreamAnswer> =>
      new Promise((resolve, reject) => {
        const {
          'accept-encoding': _compressed,
          'content-length': _length,
          expect: _expect,
          ...rest
        } = headers;
        const sent = (isTls ? httpsRequest : httpRequest)(
          {
            ...{ protocol: url.protocol, hostname: url.hostname, port: url.port, agent, method },
            path: `${base}${target}`,
            headers: {
              ...withoutHops(rest),
              ...(host === undefined ? {} : { host }),
              ...(body.length > 0 ? { 'content-length': String(body.length) } : {}),
            },
            // The certificate is the server's, whatever host the client named.
            ...(isTls ? { servername: /^[\d.]+$|:/.test(url.hostname) ? '' : url.hostname } : {}),
            signal: AbortSignal.timeout(limits.timeoutMs),
          },
          (answer) => {
            readBounded(answer, limits.bodyBytes).then(
              (read) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: read }),
              reject,
            );
          },
        );
        sent.once('error', reject);
        sent.end(body);
      }),
  };
}

function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));
}

/**
 * Reads a message's body.
 *
 * @throws Error if it has more than `most` bytes.
 */
async function readBounded(message: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    bytes += (chunk as Buffer).length;
    if (bytes > most) throw new Error(`expected a body of at most ${most} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
