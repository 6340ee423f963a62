import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The outcome of a call: a result, a JSON-RPC error, or an HTTP failure. */
export type Scripted =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | { readonly status: number; readonly text?: string };

export interface ScriptedNode extends AsyncDisposable {
  /** The URL. Its path contains an API key, as those of providers do. */
  readonly url: string;
  /** The called methods, in order. */
  readonly calls: readonly string[];
}

/** A node with scripted responses. */
export async function startScriptedNode(
  answer: (method: string, params: readonly unknown[]) => Scripted,
): Promise<ScriptedNode> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
        method: string;
        params: readonly unknown[];
      };
      calls.push(method);
      const scripted = answer(method, params);
      if ('status' in scripted) {
        response.statusCode = scripted.status;
        response.end(scripted.text ?? 'down');
      } else {
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...scripted }));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/secret-key-of-a-customer`,
    calls,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
