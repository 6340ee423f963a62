import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as StandardVerifier } from 'standardwebhooks';
import { Webhook as SvixVerifier } from 'svix';

/** A received request. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly bodyText: string;
  readonly body: { readonly type: string } & Record<string, unknown>;
}

/** Responds to a request. A request that it does not end stays pending. */
export type Reply = (received: Received, response: ServerResponse) => void;

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly received: Received[];
  /** Replaces the handler of requests. */
  reply(reply: Reply): void;
  /** Resolves when this many requests have arrived. */
  count(least: number): Promise<void>;
}

export const accept: Reply = (_, response) => void response.writeHead(204).end();
export const refuse: Reply = (_, response) => void response.writeHead(500).end('no');

/** A webhook endpoint on this machine, like the endpoint of a customer. */
export async function startWebhookReceiver(first: Reply = accept): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const waiting: { least: number; resolve: () => void }[] = [];
  let reply = first;
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const bodyText = Buffer.concat(chunks).toString('utf8');
      const { headers, url: path = '' } = request;
      const got = { path, id: String(headers['webhook-id']), headers, bodyText, body: JSON.parse(bodyText) };
      received.push(got);
      reply(got, response);
      for (const { least, resolve } of waiting) if (received.length >= least) resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    reply: (next) => {
      reply = next;
    },
    count: (least) =>
      new Promise((resolve) => {
        if (received.length >= least) resolve();
        else waiting.push({ least, resolve });
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Verifies a request with both libraries, each with its own headers, and throws their errors. They use the system
 * clock.
 */
export function verifyWebhook(
  { headers, bodyText }: Pick<Received, 'headers' | 'bodyText'>,
  secret: string,
): void {
  const family = (prefix: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(headers).filter((entry): entry is [string, string] => entry[0].startsWith(prefix)),
    );
  new StandardVerifier(secret).verify(bodyText, family('webhook-'));
  new SvixVerifier(secret).verify(bodyText, family('svix-'));
}
