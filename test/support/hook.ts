import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that the endpoint has received. */
export interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: { readonly type: string } & Record<string, unknown>;
}

/** A webhook endpoint on this machine. */
export interface Hook extends AsyncDisposable {
  readonly url: string;
  /** The requests in order of arrival. */
  readonly received: readonly Received[];
}

/** Starts an endpoint that responds with `answer`, by default with 204. */
export async function startHook(
  answer: (received: Received) => Promise<number> | number = () => 204,
): Promise<Hook> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const { method, url: path, headers } = request;
    const one = { method, path, headers, text, body: JSON.parse(text) };
    received.push(one);
    response.writeHead(await answer(one), { location: '/elsewhere' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
