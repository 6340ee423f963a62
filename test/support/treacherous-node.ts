import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The point at which the connection to the node breaks. */
export interface Trap {
  /** The connection breaks at a call of this JSON-RPC method. It is the first call, unless `passing` is set. */
  readonly method: string;
  /** Whether the node receives the call before the connection breaks. */
  readonly hasArrived: boolean;
  /** The number of calls of the method that pass before. Default: none. */
  readonly passing?: number;
}

/** A proxy between a server and its node. It forwards everything until a trap is set. */
export interface TreacherousNode extends AsyncDisposable {
  readonly url: string;
  /** Sets a trap. `spring` runs while the call is pending, and the connection breaks when it resolves. */
  set(trap: Trap, spring: () => Promise<unknown>): void;
}

export async function startTreacherousNode(nodeUrl: string): Promise<TreacherousNode> {
  let left = 0;
  let armed: { readonly trap: Trap; readonly spring: () => Promise<unknown> } | undefined;

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const questions = [JSON.parse(body.toString('utf8'))].flat() as { method: string }[];
    const set = armed;
    const isMeant = set !== undefined && questions.some(({ method }) => method === set.trap.method);
    const isTrapped = isMeant && left === 0;
    if (isMeant) left -= 1;
    if (isTrapped) armed = undefined;
    const ask = () =>
      fetch(nodeUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    if (!isTrapped) {
      const answer = await ask();
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(Buffer.from(await answer.arrayBuffer()));
      return;
    }
    if (set.trap.hasArrived) await ask();
    await set.spring();
    request.socket.destroy();
  }

  const server = createServer((request, response) => {
    pass(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set(trap, spring) {
      armed = { trap, spring };
      left = trap.passing ?? 0;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
