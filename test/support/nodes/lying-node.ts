import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request as send } from 'undici';
import type { Scripted } from '../scripted-node.ts';

/** Returns the response that replaces the true one. Undefined forwards the true response. */
export type Lie = (
  method: string,
  params: readonly unknown[],
  honest: () => Promise<Record<string, unknown>>,
) => Scripted | undefined | Promise<Scripted | undefined>;

/** A node that forwards the responses of another node, except for its lies. */
export interface LyingNode extends AsyncDisposable {
  readonly url: string;
  lie: Lie;
}

export async function startLyingNode(honestUrl: string, lie: Lie = () => undefined): Promise<LyingNode> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks);
      const { method, params } = JSON.parse(body.toString()) as { method: string; params: unknown[] };
      const headers = { 'content-type': 'application/json' };
      // A test forwards thousands of calls, for which `fetch` would need three times the CPU.
      const ask = async () => (await send(honestUrl, { method: 'POST', headers, body })).body.json();
      const honest = ask as () => Promise<Record<string, unknown>>;
      const answer = (await node.lie(method, params, honest)) ?? (await honest());
      if ('status' in answer) response.statusCode = answer.status as number;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const node: LyingNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lie,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  return node;
}

/** A lie of a node whose index of transactions is behind: it has neither transactions nor receipts. */
export const withoutReceipts: Lie = (method) =>
  method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash'
    ? { result: null }
    : undefined;
