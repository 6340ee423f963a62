import { request } from 'node:http';
import { createPublicClient, createWalletClient, http, webSocket } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base, mainnet } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// JSON-RPC over plain HTTP on a port of its own, and over WebSocket on both ports.

let sandbox: TestSandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0 });
});
afterAll(() => sandbox.close());

const call = (method: string, ...params: unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params });

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request with any `Host` and `Origin`, which `fetch` does not allow. */
async function send({ method = 'POST', path = '/', headers = {}, body = '' }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    headers: Record<string, unknown>;
    body: unknown;
  }>();
  const sent = request(new URL(path, sandbox.rpcUrl), { method, headers }, async (response) => {
    let text = '';
    for await (const chunk of response) text += String(chunk);
    const { statusCode: status = 0, headers: received } = response;
    resolve({ status, headers: received, body: text === '' ? undefined : JSON.parse(text) });
  });
  sent.once('error', reject);
  sent.end(body);
  return promise;
}

test('several chains of a sandbox take back their own changes', async () => {
  const address = `0x${'1e'.repeat(20)}`;
  const ask = async (chain: string, method: string, ...params: unknown[]): Promise<unknown> => {
    const { body } = await send({ path: `/${chain}`, body: JSON.stringify(call(method, ...params)) });
    return (body as { result?: unknown }).result;
  };
  const balances = () =>
    Promise.all(['ethereum', 'base'].map((chain) => ask(chain, 'eth_getBalance', address, 'latest')));
  const [ofEthereum, ofBase] = [await ask('ethereum', 'evm_snapshot'), await ask('base', 'evm_snapshot')];
  for (const chain of ['ethereum', 'base']) await ask(chain, 'anvil_setBalance', address, '0x5');
  expect(await balances()).toEqual(['0x5', '0x5']);
  expect(await ask('base', 'evm_revert', ofBase)).toBe(true);
  expect(await balances()).toEqual(['0x5', '0x0']);
  expect(await ask('ethereum', 'evm_revert', ofEthereum)).toBe(true);
  expect(await balances()).toEqual(['0x0', '0x0']);
});

describe('over plain HTTP', () => {
  test('a client reads and writes; the path names the chain', async () => {
    const account = privateKeyToAccount(`0x${'7c'.repeat(32)}`);
    await sandbox.faucet(account.address, { chain: 'ethereum', amount: '1' });
    const transport = http(`${sandbox.rpcUrl}/ethereum`);
    const writer = createWalletClient({ account, chain: mainnet, transport });
    const reader = createPublicClient({ chain: mainnet, transport, pollingInterval: 20 });
    const hash = await writer.sendTransaction({ to: `0x${'0e'.repeat(20)}`, value: 5n });
    await sandbox.mine(1, 'ethereum');
    expect(await reader.waitForTransactionReceipt({ hash })).toMatchObject({ status: 'success' });
    for (const [path, chainId] of [
      ['', base.id],
      ['/', base.id],
      ['/137', 137],
      ['/eip155%3A137', 137],
      ['/eip155:137', 137],
    ]) {
      const client = createPublicClient({ transport: http(`${sandbox.rpcUrl}${path}`) });
      expect(await client.getChainId()).toBe(chainId);
    }
  });

  test('pages of this machine may use it, those of other sites may not', async () => {
    const body = JSON.stringify(call('eth_chainId'));
    const page = 'http://localhost:5173';
    const preflight = await send({
      ...{ method: 'OPTIONS', path: '/base' },
      headers: {
        ...{ origin: page, 'access-control-request-method': 'POST' },
        'access-control-request-headers': 'content-type',
      },
    });
    expect(preflight).toMatchObject({
      ...{ status: 204, headers: { 'access-control-allow-origin': page } },
    });
    const local = await send({ headers: { origin: page }, body });
    expect(local).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': page } });
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { host: 'evil.example' },
      { origin: 'https://localhost.evil.example' },
    ]) {
      for (const method of ['POST', 'OPTIONS']) {
        const refused = await send({ method, headers, body: method === 'POST' ? body : '' });
        expect(refused.status).toBe(403);
        expect(refused.headers).not.toHaveProperty('access-control-allow-origin');
      }
    }
  });

  test.each([
    ['no JSON', { body: '{' }, 200, -32_700],
    ['an empty body', {}, 200, -32_700],
    ['a text', { body: '"eth_chainId"' }, 200, -32_600],
    ['null', { body: 'null' }, 200, -32_600],
    ['an empty batch', { body: '[]' }, 200, -32_600],
    ['a batch of 1,001', { body: JSON.stringify(Array(1_001).fill(call('eth_chainId'))) }, 200, -32_600],
    ['more than a MiB', { body: ' '.repeat(1_048_577) }, 413, -32_600],
    ['an unknown chain', { path: '/nowhere', body: '{}' }, 400, -32_600],
    ['a chain whose nodes have no JSON-RPC', { path: '/tron', body: '{}' }, 400, -32_600],
    ['an invalid encoding', { path: '/%ff', body: '{}' }, 404, -32_600],
    ['a deeper path', { path: '/base/x', body: '{}' }, 404, -32_600],
    ['GET', { method: 'GET' }, 405, -32_600],
  ])('%s is an error of JSON-RPC', async (_, sent, status, code) => {
    expect(await send(sent)).toMatchObject({ status, body: { jsonrpc: '2.0', id: null, error: { code } } });
  });

  test('responses have the ids of their calls', async () => {
    const ids = [0, -1, 1.5, 2 ** 53 - 1, 'a', '', '7', 7, 7, null, 'x'.repeat(500_000), '\u2028"'];
    const batch = ids.map((id) => ({ ...call('eth_chainId'), id }));
    const { body } = await send({ body: JSON.stringify(batch) });
    expect(body).toEqual(ids.map((id) => ({ jsonrpc: '2.0', id, result: '0x2105' })));
    // JavaScript rounds larger numbers, so a client would not find the call of a response.
    for (const id of ['9007199254740993', '1e400', 'true', '{}', '[7]']) {
      const sent = await send({ body: `{"jsonrpc":"2.0","id":${id},"method":"eth_chainId"}` });
      expect(sent).toMatchObject({ status: 200, body: { id: null, error: { code: -32_600 } } });
    }
  });

  test('a batch of any content is answered in order', async () => {
    const body = JSON.stringify([1, call('eth_chainId'), null, [], { id: 7, method: 'net_version' }]);
    expect((await send({ body })).body).toMatchObject([
      { error: { code: -32_600 } },
      { id: 1, result: '0x2105' },
      { error: { code: -32_600 } },
      { error: { code: -32_600 } },
      { id: 7, result: '8453' },
    ]);
  });
});

describe('over WebSocket', () => {
  const socketUrl = () => sandbox.rpcUrl.replace('http', 'ws');
  const controlUrl = (chain: string) => `${sandbox.baseUrl.replace('http', 'ws')}/_sandbox/rpc/${chain}`;

  /** The status of a refused upgrade; 101 if it succeeds. */
  async function statusOf(url: string, options: object = {}): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const socket = new WebSocket(url, { ca: sandbox.caPem, ...options });
    socket.once('open', () => resolve(101));
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => resolve(statusCode));
    socket.once('error', reject);
    return promise.finally(() => socket.terminate());
  }

  test('viem calls and sends batches', async () => {
    const client = createPublicClient({ chain: base, transport: webSocket(`${socketUrl()}/base`) });
    const [chainId, block] = await Promise.all([client.getChainId(), client.getBlockNumber()]);
    expect([chainId, block > 0n]).toEqual([base.id, true]);
    const socket = await client.transport.getRpcClient();
    socket.close();
  });

  test('the port of the sandbox upgrades, under the rules of the control plane', async () => {
    expect(await statusOf(controlUrl('base'))).toBe(101);
    expect(await statusOf(controlUrl('solana'))).toBe(101);
    expect(await statusOf(controlUrl('tron'))).toBe(400);
    expect(await statusOf(controlUrl('base/x'))).toBe(404);
    expect(await statusOf(`${sandbox.baseUrl.replace('http', 'ws')}/v1/wallets`)).toBe(404);
    expect(await statusOf(controlUrl('base'), { origin: 'http://localhost:5173' })).toBe(404);
    expect(await statusOf(controlUrl('base'), { headers: { host: 'evil.example' } })).toBe(404);
    expect(await statusOf(`${socketUrl()}/base`, { origin: 'http://localhost:5173' })).toBe(101);
    expect(await statusOf(`${socketUrl()}/base`, { origin: 'https://evil.example' })).toBe(403);
    expect(await statusOf(`${socketUrl()}/base`, { headers: { host: 'evil.example' } })).toBe(403);
  });

  test('messages are answered in order; one that is too large ends the connection', async () => {
    const socket = new WebSocket(`${socketUrl()}/base`);
    const received: unknown[] = [];
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    socket.on('message', (data: Buffer) => received.push(JSON.parse(data.toString())));
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send('{');
    for (let id = 0; id < 1_000; id += 1) socket.send(JSON.stringify({ ...call('eth_chainId'), id }));
    socket.send(Buffer.from([0xff, 0xfe]));
    await expect.poll(() => received.length, { timeout: 60_000 }).toBe(1_002);
    const errors = received.filter((each) => (each as { error?: unknown }).error !== undefined);
    expect(errors).toMatchObject([{ error: { code: -32_700 } }, { error: { code: -32_700 } }]);
    expect(received.slice(1, -1)).toMatchObject(Array.from({ length: 1_000 }, (_, id) => ({ id })));
    socket.send(' '.repeat(1_048_577));
    expect(await closed).toBe(1009);
    expect(await statusOf(`${socketUrl()}/base`)).toBe(101);
  });

  test('a sandbox that stops closes them', async () => {
    const other = await startSandbox({ clock: 'frozen', rpcPort: 0 });
    const sockets = [
      other.rpcUrl.replace('http', 'ws'),
      `${other.baseUrl.replace('http', 'ws')}/_sandbox/rpc/base`,
    ];
    const opened = sockets.map((url) => new WebSocket(url, { ca: other.caPem }));
    await Promise.all(opened.map((socket) => new Promise((resolve) => socket.once('open', resolve))));
    const closed = opened.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    await other.close();
    await Promise.all(closed);
  });
});
