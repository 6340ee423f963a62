import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { endWithFile } from './processes/left-over.ts';

/** A separate anvil on a free port. Only `evm_mine` mines blocks. */
export interface Anvil extends AsyncDisposable {
  readonly url: string;
  ask(method: string, ...params: unknown[]): Promise<unknown>;
}

/** @param options more of its command line. */
export async function startAnvil(
  chainId: number,
  hardfork = 'prague',
  options: readonly string[] = [],
): Promise<Anvil> {
  const system = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const manifest = createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${system}/package.json`);
  const binary = join(dirname(manifest), 'bin', 'anvil');
  const node = spawn(
    binary,
    ['--port', '0', '--chain-id', String(chainId), '--no-mining', '--hardfork', hardfork, ...options],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  endWithFile(node);
  const url = await new Promise<string>((resolve, reject) => {
    node.once('error', reject);
    node.once('exit', (code) => reject(new Error(`anvil ended with ${code}`)));
    createInterface(node.stdout).on('line', (line) => {
      const address = /^Listening on (\S+)/.exec(line)?.[1];
      if (address !== undefined) resolve(`http://${address}`);
    });
  });
  return {
    url,
    async ask(method, ...params) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result;
    },
    async [Symbol.asyncDispose]() {
      const ended = once(node, 'exit');
      node.kill();
      await ended;
    },
  };
}
