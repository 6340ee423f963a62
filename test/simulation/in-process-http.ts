import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Pipeline } from '../../src/server/pipeline.ts';

/** A request as a client sends it. */
export interface SentRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** The response of a server, or none because the connection was lost. */
type Reply =
  | { readonly isLost: true }
  | {
      readonly isLost: false;
      readonly status: number;
      readonly headers: Readonly<Record<string, unknown>>;
      readonly text: string;
    };

/** A request in progress. */
export interface Exchange {
  readonly reply: Promise<Reply>;
  /** The server has done everything for this request. */
  readonly done: Promise<void>;
  /** The client or the server is gone. */
  cut(): void;
}

/** Gives a request to the pipeline of a server without any sockets. */
export function exchange(handle: Pipeline, sent: SentRequest): Exchange {
  const socket = {
    remoteAddress: '127.0.0.1',
    encrypted: true,
    readable: false,
    writable: true,
    destroy: () => undefined,
    on: () => undefined,
  } as unknown as Socket;
  const request = new IncomingMessage(socket);
  const bytes = sent.body === undefined ? undefined : Buffer.from(sent.body);
  const headers = {
    host: 'custos.test',
    ...sent.headers,
    ...(bytes === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
  };
  request.method = sent.method;
  request.url = sent.target;
  request.headers = headers;
  request.rawHeaders = Object.entries(headers).flat() as string[];
  if (bytes !== undefined) request.push(bytes);
  request.push(null);
  request.complete = true;
  const response = new ServerResponse(request);
  const { promise, resolve } = Promise.withResolvers<Reply>();
  response.end = ((content?: string | Buffer) => {
    resolve({
      isLost: false,
      status: response.statusCode,
      headers: response.getHeaders(),
      text: content === undefined ? '' : content.toString(),
    });
    response.emit('close');
    return response;
  }) as typeof response.end;
  // NOTE: headers that are passed to `writeHead` are in no list of the response.
  const writeHead = response.writeHead.bind(response) as (status: number, headers?: object) => unknown;
  response.writeHead = ((status: number, more: object = {}) => {
    for (const [name, value] of Object.entries(more)) response.setHeader(name, value as string);
    writeHead(status);
    return response;
  }) as typeof response.writeHead;
  return {
    done: handle(request, response),
    reply: promise,
    cut() {
      response.destroyed = true;
      resolve({ isLost: true });
    },
  };
}
