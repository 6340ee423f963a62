import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { nextTurn } from '../../engine/in-slices.ts';
import { ApiError } from '../../errors.ts';
import type { Log } from '../../ports/runtime.ts';
import { errorAnswer } from '../error-response.ts';
import { isLocalOrigin, requireLocalCaller, requireOwnHost } from '../origins.ts';
import { createBodyReader, discardBody, MAX_BODY_BYTES, RequestAbortedError } from '../read-body.ts';
import { startServer } from '../server.ts';
import { createTransportGuard, type TransportRules } from '../transport-guards.ts';

/** The sender of a message. */
interface Sender {
  /** Aborted when the sender disconnects. */
  readonly signal: AbortSignal;
  /** The lasting connection of the call, such as a WebSocket. Undefined for plain HTTP, which has no notifications. */
  readonly connection?: { readonly closed: AbortSignal; notify(message: object): void };
}

/** Executes JSON-RPC messages from any transport. */
export interface RpcEndpoint {
  /** Returns the CAIP-2 id of a chain from its id, name or number. Throws ApiError for an unknown chain. */
  chainOf(name: string): string;
  answer(caip2: string, message: unknown, sender: Sender): Promise<unknown>;
}

interface RpcServerOptions {
  readonly endpoint: RpcEndpoint;
  readonly log: Log;
  readonly newRequestId: () => string;
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal;
}

const HOST = '127.0.0.1';
/** CHOICE: `/` of the port is Base, the chain of `custos faucet` without `--chain`. */
const DEFAULT_CHAIN = 'base';
const PREFLIGHT_SECONDS = '600';
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/** CHOICE: the maximum number of open WebSockets on all ports together. Further connections are refused. */
const MAX_SOCKETS = 2_000;
/** CHOICE: a client that has left more bytes than this unread is disconnected. */
const MAX_UNREAD_BYTES = 4 * 1_048_576;
/** CHOICE: how many messages of a connection may wait before the server stops reading from it. */
const MAX_WAITING = 100;
const HEARTBEAT_MS = 30_000;

/** Upgrades connections to WebSockets with JSON-RPC. */
export interface RpcSockets {
  /** Upgrades a connection. `admit` returns the chain, or throws an ApiError to refuse the connection. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, admit: () => string): void;
}

/** Serves WebSockets on every port, and closes them when the server stops. */
export function rpcSockets({ endpoint, log, newRequestId, stopping }: RpcServerOptions): RpcSockets {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_BODY_BYTES,
    perMessageDeflate: false,
  });
  const heartbeat = setInterval(() => {
    for (const socket of server.clients) {
      if (silent.has(socket)) socket.terminate();
      silent.add(socket);
      socket.ping();
    }
  }, HEARTBEAT_MS).unref();
  /** The connections that have not answered the last ping. */
  const silent = new WeakSet<WebSocket>();
  stopping.addEventListener('abort', () => {
    clearInterval(heartbeat);
    for (const socket of server.clients) socket.terminate();
  });
  return {
    upgrade(request, socket, head, admit) {
      socket.on('error', () => socket.destroy());
      try {
        const caip2 = admit();
        if (server.clients.size >= MAX_SOCKETS) {
          throw new ApiError('unavailable', `expected at most ${MAX_SOCKETS} open WebSockets`, {
            headers: { 'retry-after': '1' },
          });
        }
        server.handleUpgrade(request, socket, head, (opened) => {
          opened.on('pong', () => silent.delete(opened));
          serve(opened, (message, sender) => endpoint.answer(caip2, message, sender), log);
        });
      } catch (error) {
        const { status, body, headers } = errorAnswer(error, { id: newRequestId() }, log);
        const text = JSON.stringify(body);
        const lines = Object.entries({
          ...headers,
          connection: 'close',
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(text),
        }).map(([name, value]) => `${name}: ${value}`);
        socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('\r\n')}\r\n\r\n${text}`);
      }
    },
  };
}

/** Answers the messages of one connection, in order. */
function serve(
  socket: WebSocket,
  answer: (message: unknown, sender: Sender) => Promise<unknown>,
  log: Log,
): void {
  const disconnected = new AbortController();
  const send = (message: unknown): void => {
    if (socket.readyState !== socket.OPEN) return;
    socket.send(JSON.stringify(message));
    if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
  };
  const sender: Sender = {
    signal: disconnected.signal,
    connection: { closed: disconnected.signal, notify: send },
  };
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  socket.on('error', () => socket.terminate());
  socket.on('close', () => disconnected.abort());
  socket.on('message', (data: Buffer) => {
    waiting += 1;
    if (waiting > MAX_WAITING) socket.pause();
    last = last.then(async () => {
      // Other connections get their turn although many messages have arrived together.
      await nextTurn();
      if (!disconnected.signal.aborted)
        send(await answerText(data.toString(), (message) => answer(message, sender)));
      waiting -= 1;
      if (socket.isPaused && waiting <= MAX_WAITING / 2) socket.resume();
    });
    last.catch((error: unknown) => {
      log.error({ err: error }, 'failed to handle a WebSocket message');
      socket.terminate();
    });
  });
}

async function answerText(text: string, answer: (message: unknown) => Promise<unknown>): Promise<unknown> {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return failure(null, PARSE_ERROR, 'parse error: expected JSON');
  }
  return answer(message);
}

/** Returns the handler of upgrades on the main port, which follow the rules of the control plane. */
export function controlUpgrades(
  sockets: RpcSockets,
  {
    endpoint,
    config,
    transport,
    path,
  }: {
    readonly endpoint: RpcEndpoint;
    readonly config: Parameters<typeof requireLocalCaller>[0] & {
      readonly controlToken?: string | undefined;
    };
    readonly transport: TransportRules;
    /** Captures the name of the chain. */
    readonly path: RegExp;
  },
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const requireLocal = requireLocalCaller(config, config.controlToken);
  const guard = createTransportGuard(transport);
  return (request, socket, head) => {
    sockets.upgrade(request, socket, head, () => {
      guard.scheme(request);
      const [, name] = path.exec(request.url ?? '') ?? [];
      if (name === undefined) throw new ApiError('not_found');
      requireLocal({ headers: request.headers, remoteAddress: guard.clientAddress(request) });
      return endpoint.chainOf(decoded(name));
    });
  };
}

export interface RpcPort {
  /** Without a trailing slash. Append `/` and the name, number or CAIP-2 id to select a chain. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on a port of this machine for JSON-RPC over plain HTTP and WebSocket, at `/` and `/{chain}`. */
export async function openRpcPort(
  port: number,
  sockets: RpcSockets,
  options: RpcServerOptions,
): Promise<RpcPort> {
  const requireHost = requireOwnHost({ host: HOST, publicUrls: [] });
  const readBody = createBodyReader();
  const { endpoint, log, newRequestId } = options;

  /**
   * Refuses web pages of other sites.
   * @returns the chain that the request names.
   */
  const admit = ({ headers, url = '/' }: IncomingMessage): string => {
    requireHost({ headers, route: undefined });
    const [, name] = /^\/([^/?]*)(?:\?.*)?$/.exec(url) ?? [];
    if (name === undefined) throw new ApiError('not_found');
    return endpoint.chainOf(name === '' ? DEFAULT_CHAIN : decoded(name));
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const caip2 = admit(request);
    if (request.method !== 'POST') {
      throw new ApiError('method_not_allowed', undefined, { headers: { allow: 'OPTIONS, POST' } });
    }
    const disconnected = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) disconnected.abort();
    });
    const { bytes, release } = await readBody(request, request.socket.remoteAddress ?? '');
    try {
      return await answerText(bytes.toString(), (message) =>
        endpoint.answer(caip2, message, { signal: disconnected.signal }),
      );
    } finally {
      release();
    }
  };
  const handler: RequestListener = async (request, response) => {
    allowLocalPage(request, response);
    if (isPreflight(request)) {
      response.writeHead(204).end();
      return;
    }
    try {
      write(response, 200, await answer(request, response));
    } catch (error) {
      discardBody(request);
      if (error instanceof RequestAbortedError) return;
      const { status, body, headers } = errorAnswer(error, { id: newRequestId() }, log);
      for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
      const { error: message } = body as { error: string };
      write(response, status, failure(null, INVALID_REQUEST, message));
    }
  };
  const server = await startServer({
    ...{ handler, host: HOST, port, log, newRequestId, tls: undefined },
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head, () => admit(request)),
  });
  return { url: `http://${HOST}:${server.port}`, close: () => server.close() };
}

/** Lets web pages on this machine, such as those of a development server, read responses. */
function allowLocalPage({ headers }: IncomingMessage, response: ServerResponse): void {
  const { origin } = headers;
  response.setHeader('vary', 'origin, access-control-request-headers');
  if (origin === undefined || !isLocalOrigin(origin)) return;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-allow-methods', 'POST');
  response.setHeader(
    'access-control-allow-headers',
    headers['access-control-request-headers'] ?? 'content-type',
  );
  response.setHeader('access-control-max-age', PREFLIGHT_SECONDS);
}

function isPreflight({ method, headers: { origin = '' } }: IncomingMessage): boolean {
  return method === 'OPTIONS' && isLocalOrigin(origin);
}

function write(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function failure(id: null, code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw new ApiError('not_found');
  }
}
