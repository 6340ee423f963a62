import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createServer } from 'node:net';

/** A request that the server sends to itself. */
interface OwnRequest {
  readonly url: string;
  readonly method: string;
  /** The headers. If there is a body, they must include `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

interface OwnResponse {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly text: string;
}

/** Sends requests to the server of this process. */
interface OwnServer {
  /** Sends a request. Returns undefined if the connection was closed without a complete response. */
  send(request: OwnRequest, signal: AbortSignal): Promise<OwnResponse | undefined>;
  close(): void;
}

const REQUEST_LIMIT_MS = 60_000;

/**
 * Creates a client for the server of this process.
 *
 * @param ca the PEM of the authority that issued the server's certificate.
 */
export function ownServer(ca: string): OwnServer {
  const agent = new Agent({ ca, keepAlive: true });
  return {
    send({ url, method, headers, body }, signal) {
      const isTls = url.startsWith('https:');
      const limited = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_LIMIT_MS)]);
      return new Promise((resolve) => {
        const fail = (): void => resolve(undefined);
        const sent = (isTls ? httpsRequest : httpRequest)(
          url,
          { method, headers, signal: limited, ...(isTls ? { agent } : {}) },
          (response) => void readResponse(response).then(resolve, fail),
        );
        sent.once('error', fail);
        sent.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

async function readResponse(response: IncomingMessage): Promise<OwnResponse> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const { 'x-request-id': requestId } = response.headers;
  return {
    status: response.statusCode ?? 0,
    requestId: requestId === undefined ? undefined : String(requestId),
    text: Buffer.concat(chunks).toString('utf8'),
  };
}

/**
 * Checks that a port is free by listening on it briefly. 0 is any free port.
 *
 * @throws the error of the system: EADDRINUSE, EACCES, EADDRNOTAVAIL.
 */
export function requireFreePort(host: string, port: number): Promise<void> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}
