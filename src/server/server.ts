import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../ports/runtime.ts';

export interface ServerOptions {
  readonly handler: RequestListener;
  /** In PEM; undefined if a proxy terminates TLS. */
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  readonly log: Log;
  readonly newRequestId: () => string;
  /** How long `close` waits for requests in progress. */
  readonly graceMs?: number;
  readonly connections?: ConnectionLimits | undefined;
  /** How long a client may leave a response unread. */
  readonly unreadMs?: number;
  /** Takes over connections that request another protocol, and closes them when the server stops. */
  readonly upgrade?: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
}

/** The maximum number of open connections. More connections are closed immediately. */
export interface ConnectionLimits {
  readonly total: number;
  /** Default: unlimited, because all clients behind a proxy have its address. */
  readonly perAddress?: number | undefined;
}

/** CHOICE: within the usual limits of file descriptors and memory. */
const defaultConnectionLimits: ConnectionLimits = { total: 10_000 };

export interface RunningServer {
  readonly host: string;
  readonly port: number;
  /** Returns the number of requests in progress. */
  inFlight(): number;
  /** Uses another certificate for new connections. Throws if the certificate cannot be used. */
  setCertificate(certificate: { readonly key: string; readonly cert: string }): void;
  /**
   * Stops accepting connections, waits up to `graceMs` for requests in progress, then closes the rest. May be called
   * again.
   *
   * @param lingerMs keeps idle connections for this time. A request on such a connection is answered, and the response
   * closes it.
   */
  close(lingerMs?: number): Promise<void>;
}

// RFC 8446 §5.1: a TLS connection begins with a record of type handshake.
const TLS_HANDSHAKE = 0x16;
const FIRST_BYTE_MS = 10_000;
const DEFAULT_GRACE_MS = 10_000;

/**
 * CHOICE: how long a client may read nothing before its connection is closed. Its unread responses stay in memory, and
 * so do the responses to its next requests. A client that reads slowly is not affected.
 */
const UNREAD_MS = 30_000;

/**
 * CHOICE: how many requests of one connection may wait for their responses before the server stops reading from it.
 * Requests that have already arrived are started, so there may be a few more. Pipelined responses are sent in order
 * anyway, so this delays no client.
 */
const MAX_PIPELINED = 100;

const settings = {
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  // Longer than the idle timeout of most load balancers (60 s), so that none sends a request on a closed connection.
  keepAliveTimeout: 65_000,
  maxHeaderSize: 32 * 1024, // by the document, signatures alone may have 16,384 characters
  requireHostHeader: false,
};

/**
 * Listens on one TCP port. With a certificate, the first byte of a connection decides: a TLS handshake is answered in
 * TLS, everything else as plain HTTP, so that the pipeline can send a proper refusal.
 */
export function startServer(options: ServerOptions): Promise<RunningServer> {
  const { handler, tls } = options;
  const pending = trackRequests();
  let isStopping = false;
  let isLingering = false;

  function forget(this: ServerResponse): void {
    pending.leave(this);
    if (isStopping && !isLingering) server.closeIdleConnections();
  }
  const begin = (response: ServerResponse): void => {
    pending.enter(response);
    response.on('close', forget);
    if (isStopping) response.setHeader('connection', 'close');
  };
  const refuse = (response: ServerResponse, status: number, message: string): void => {
    const { head, body } = refusal(status, message, options.newRequestId());
    response.writeHead(status, head).end(body);
  };
  const listener: RequestListener = (request, response) => {
    begin(response);
    // RFC 9112 section 3.2. Node itself would respond without a body.
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      refuse(response, 400, 'expected the header `host`');
    } else handler(request, response);
  };
  const secure = tls && createHttpsServer({ ...settings, ...tls, handshakeTimeout: FIRST_BYTE_MS }, listener);
  const server = secure ?? createHttpServer(settings, listener);
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    begin(response);
    refuse(response, 417, `expected no \`expect\` or \`100-continue\`, got \`${request.headers.expect}\``);
  });
  if (options.upgrade !== undefined) server.on('upgrade', options.upgrade);
  const undecided = tls === undefined ? new Set<Socket>() : decideByFirstByte(server);
  limitConnections(server, options.connections ?? defaultConnectionLimits);
  answerBrokenRequests(server, pending, options.newRequestId);
  answerConnect(server, pending, options.newRequestId);
  endUnread(server, options.unreadMs ?? UNREAD_MS);

  const stop = async (lingerMs: number): Promise<void> => {
    isStopping = true;
    // NOTE: `close` of an HTTP server would also close idle connections, on which a client may just begin a request.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    for (const response of pending.responses())
      if (!response.headersSent) response.setHeader('connection', 'close');
    isLingering = true;
    await Promise.race([closed, pause(lingerMs, undefined, { ref: false })]);
    isLingering = false;
    server.closeIdleConnections();
    for (const socket of undecided) socket.destroy();
    const timer = setTimeout(() => {
      const requests = pending.count();
      options.log.warn({ requests }, 'requests cut off at shutdown: they did not finish in time');
      server.closeAllConnections();
    }, options.graceMs ?? DEFAULT_GRACE_MS);
    await closed;
    clearTimeout(timer);
    // Stops the timer with which Node looks for late requests. It would keep the server and its handlers in memory.
    server.close();
  };

  let stopped: Promise<void> | undefined;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      server.on('error', (error) => options.log.error({ err: error }, 'the server failed'));
      const { port } = server.address() as AddressInfo;
      resolve({
        host: options.host,
        port,
        inFlight: pending.count,
        setCertificate: (certificate) => secure?.setSecureContext(certificate),
        close: (lingerMs = 0) => {
          stopped ??= stop(lingerMs);
          return stopped;
        },
      });
    });
  });
}

/**
 * Reads the first byte before the TLS server does. Connections with and without TLS end up in the same HTTP server, so
 * its timeouts and its list of connections cover both.
 */
function decideByFirstByte(server: HttpServer): Set<Socket> {
  const undecided = new Set<Socket>();
  const [startTls] = server.listeners('connection') as ((socket: Socket) => void)[];
  if (startTls === undefined) throw new Error('node:https no longer listens to `connection`');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    undecided.add(socket);
    const forget = (): void => void undecided.delete(socket);
    const giveUp = (): void => void socket.destroy();
    socket.once('close', forget);
    socket.on('error', giveUp);
    socket.setTimeout(FIRST_BYTE_MS, giveUp);
    socket.once('data', (chunk: Buffer) => {
      forget();
      socket.off('close', forget);
      socket.off('error', giveUp);
      socket.setTimeout(0);
      socket.off('timeout', giveUp);
      socket.pause();
      socket.unshift(chunk);
      if (chunk[0] === TLS_HANDSHAKE) startTls.call(server, socket);
      else {
        // The TLS server emits this event after a handshake. It makes Node treat the connection as HTTP.
        server.emit('secureConnection', socket);
        socket.resume();
      }
    });
  });
  return undecided;
}

const statusLines: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** The requests in progress, by connection. */
interface PendingRequests {
  enter(response: ServerResponse): void;
  leave(response: ServerResponse): void;
  count(): number;
  /** Returns the responses that are not complete. */
  responses(): ServerResponse[];
  /** Returns whether a complete request waits for its response. The refusal of a later one must not overtake it. */
  hasComplete(socket: Socket): boolean;
  /** Closes the connection after the responses to its complete requests. */
  closeAfterwards(socket: Socket): void;
}

interface Connection {
  readonly socket: Socket;
  /** In the order of the requests. */
  readonly responses: ServerResponse[];
  isClosing: boolean;
  /** Whether the server has stopped reading, because too many requests are in progress. */
  isPaused: boolean;
}

/** The methods of the socket's handle that are used here. */
interface ReadHandle {
  readStart(): void;
  readStop(): void;
}

/**
 * Stops reading from a socket, or resumes.
 *
 * NOTE: this uses the handle of a socket, which Node does not document. Node 24 has no documented way to stop reading
 * from an HTTP connection:
 *
 * - `socket.pause()` does not stop the parser of node:http, which reads from the handle itself. Node also resumes the
 *    socket whenever a response is written.
 * - `server.maxRequestsPerSocket` counts all requests of a connection, not only the open ones.
 * - After a response with `connection: close`, Node still parses and keeps the requests that follow.
 * - A `Duplex` in front of the socket can stop, but every request then passes through two more streams.
 * `server.test.ts` fails if the handle disappears.
 */
function stopReading(socket: Socket, isStopped: boolean): void {
  const { _handle } = socket as Socket & { readonly _handle?: ReadHandle | null };
  if (isStopped) _handle?.readStop();
  else _handle?.readStart();
}

function setPaused(connection: Connection, isPaused: boolean): void {
  connection.isPaused = isPaused;
  stopReading(connection.socket, isPaused);
}

/**
 * Tracks the requests in progress. HOT: they are stored on each connection, not in one set that changes with each
 * request. When V8 grows a set, the old table references the new one. Once an old table is in the old generation, only
 * a full garbage collection frees the later tables and the requests in them.
 */
function trackRequests(): PendingRequests {
  const connections = new Map<Socket, Connection>();
  let count = 0;
  const connectionOf = (socket: Socket): Connection => {
    let known = connections.get(socket);
    if (known === undefined) {
      known = { socket, responses: [], isClosing: false, isPaused: false };
      connections.set(socket, known);
      socket.once('close', () => connections.delete(socket));
    }
    return known;
  };
  // Requests of a connection arrive in sequence, so only the last one can be incomplete.
  const hasComplete = ({ responses }: Connection): boolean =>
    responses.length > 1 || responses[0]?.req.complete === true;
  return {
    enter(response) {
      count += 1;
      const known = connectionOf(response.req.socket);
      known.responses.push(response);
      if (known.responses.length >= MAX_PIPELINED && !known.isPaused) setPaused(known, true);
    },
    leave(response) {
      count -= 1;
      const known = connections.get(response.req.socket);
      if (known === undefined) return;
      known.responses.splice(known.responses.indexOf(response), 1);
      if (known.isClosing && !hasComplete(known)) known.socket.destroySoon();
      if (known.isPaused && known.responses.length <= MAX_PIPELINED / 2) setPaused(known, false);
    },
    count: () => count,
    responses: () => [...connections.values()].flatMap(({ responses }) => responses),
    hasComplete(socket) {
      const known = connections.get(socket);
      return known !== undefined && hasComplete(known);
    },
    closeAfterwards(socket) {
      const known = connections.get(socket);
      if (known !== undefined) known.isClosing = true;
    },
  };
}

/** Closes connections whose client reads nothing. */
function endUnread(server: HttpServer, unreadMs: number): void {
  server.timeout = unreadMs;
  // Without a listener, Node would also close connections whose handler is still working. Other limits apply to those.
  server.on('timeout', (socket: Socket) => {
    const isKeptAlive = socket.timeout !== unreadMs;
    if (isKeptAlive || socket.writableLength > 0) socket.destroy();
  });
}

function limitConnections(server: HttpServer, { total, perAddress }: ConnectionLimits): void {
  server.maxConnections = total;
  if (perAddress === undefined) return;
  const counts = new Map<string, number>();
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
    if (count > perAddress) socket.destroy();
  });
}

/**
 * Answers malformed HTTP with the usual error body, if the client can still read it.
 *
 * INVARIANT: the response to a malformed request never takes the place of the response to an earlier, complete request.
 * The connection closes after the pending responses.
 */
function answerBrokenRequests(
  server: HttpServer,
  pending: PendingRequests,
  newRequestId: () => string,
): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Node emits the event again for each further chunk of a malformed request. It must not cut off the response.
    if (socket.writableEnded) return;
    const code = error.code ?? '';
    const isHttpFault = code.startsWith('HPE_') || code in statusLines;
    if (!isHttpFault || !socket.writable) {
      socket.destroy();
      return;
    }
    if (pending.hasComplete(socket as Socket)) {
      pending.closeAfterwards(socket as Socket);
      return;
    }
    socket.end(closingResponse(statusLines[code] ?? '400 Bad Request', newRequestId()));
  });
}

/** Answers CONNECT, which this server does not support. Node leaves the connection to this listener. */
function answerConnect(server: HttpServer, pending: PendingRequests, newRequestId: () => string): void {
  server.on('connect', (_request, socket) => {
    // Node has removed its own listener.
    socket.on('error', () => socket.destroy());
    if (pending.hasComplete(socket as Socket)) pending.closeAfterwards(socket as Socket);
    // RFC 9110 section 15.5.6: a 405 lists the allowed methods. A tunnel has none.
    else socket.end(closingResponse('405 Method Not Allowed', newRequestId(), { allow: '' }));
  });
}

/** Returns a complete response that closes the connection. */
function closingResponse(statusLine: string, requestId: string, more: Record<string, string> = {}): string {
  const { head, body } = refusal(Number.parseInt(statusLine, 10), statusLine.slice('400 '.length), requestId);
  const lines = Object.entries({ ...head, ...more }).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${statusLine}\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** Returns the error response, which closes the connection, to a request that does not reach the pipeline. */
function refusal(
  status: number,
  message: string,
  requestId: string,
): { head: Record<string, string>; body: string } {
  // In the API document, every 400 has a `code`. The other statuses that are sent from here need none.
  const body = JSON.stringify({ error: message, ...(status === 400 && { code: 'invalid_data' }) });
  const head = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    connection: 'close',
  };
  return { head, body };
}
