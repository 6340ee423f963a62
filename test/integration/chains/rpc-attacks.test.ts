import { hexToBytes, keccak256 } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { attacksWith, errorIn } from '../../support/evm/attacks.ts';

// Bad input over JSON-RPC is refused or bounded, and the chain goes on. How long it holds the server is measured by
// `npm run bench -- --only rpc-attacks`.

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, seedData: false });
});
afterAll(() => sandbox.close());

async function post(body: string): Promise<unknown> {
  const response = await fetch(`${sandbox.rpcUrl}/base`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
  });
  return response.json();
}

const call = async (method: string, ...params: unknown[]) =>
  (await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))) as {
    result?: unknown;
    error?: { code: number; message: string };
  };

/** Enough for a fraction of a second. */
const GAS = 1_000_000;

/** `rpc-traces.test.ts` sends such a batch, which takes five seconds of the processor, and says how it ends. */
const attacks = attacksWith(GAS).filter(({ name }) => name !== 'a batch of 1,000 endless loops');

test.each(attacks)('$name', async ({ body, refused }) => {
  const error = errorIn(await post(body));
  if (refused === undefined) expect(error).toBeUndefined();
  else expect(error).toMatch(refused);
  expect(await call('eth_chainId')).toMatchObject({ result: '0x2105' });
});

test.each([0, 65_535, 65_536, 65_537, 200_001])('the hash of %d bytes is the same in parts', async (size) => {
  const target = `0x${'a8'.repeat(20)}` as const;
  // Fills memory by CODECOPY of the code itself, hashes it, and returns the hash.
  const number = size.toString(16).padStart(6, '0');
  const code = `0x62${number}5f5f3962${number}5f205f5260205ff3` as const;
  const answer = await call('eth_call', { to: target }, 'latest', { [target]: { code } });
  const memory = new Uint8Array(size);
  memory.set(hexToBytes(code).subarray(0, size));
  expect(answer).toMatchObject({ result: keccak256(memory) });
});

test('10,000 log filters: those beyond the limit are refused, and the others work', async () => {
  const filters: string[] = [];
  const refusals: unknown[] = [];
  for (let count = 0; count < 10_000; count += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, id) => ({
      ...{ jsonrpc: '2.0', id, method: 'eth_newFilter', params: [{}] },
    }));
    const answers = (await post(JSON.stringify(batch))) as { result?: string; error?: object }[];
    for (const { result, error } of answers) {
      if (result === undefined) refusals.push(error);
      else filters.push(result);
    }
  }
  expect(filters.length + refusals.length).toBe(10_000);
  await sandbox.faucet(`0x${'c1'.repeat(20)}`, { chain: 'base', asset: 'usdc', amount: '1' });
  // The newest filter works, whether the oldest ones were replaced or the last ones refused.
  expect((await call('eth_getFilterChanges', filters.at(-1))).result).toHaveLength(1);
});

test('1,000 idle sockets: others are served meanwhile', async () => {
  const url = `${sandbox.rpcUrl.replace('http', 'ws')}/base`;
  const sockets = Array.from({ length: 1_000 }, () => new WebSocket(url));
  const outcomes = await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<string>((resolve) => {
          socket.once('open', () => resolve('open'));
          socket.once('error', () => resolve('refused'));
        }),
    ),
  );
  expect(outcomes).toContain('open');
  expect(await call('eth_chainId')).toMatchObject({ result: '0x2105' });
  for (const socket of sockets) socket.terminate();
  await expect.poll(async () => (await call('eth_chainId')).result).toBe('0x2105');
});

test('a request is answered while many messages of other connections wait', async () => {
  const url = `${sandbox.rpcUrl.replace('http', 'ws')}/base`;
  const sockets = Array.from({ length: 100 }, () => new WebSocket(url));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('open', resolve))));
  const count = 20 * sockets.length;
  let answered = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  for (const socket of sockets) {
    socket.on('message', () => {
      answered += 1;
      if (answered === count) resolve();
    });
    for (let sent = 0; sent < 20; sent += 1) socket.send(message);
  }
  expect(await call('eth_chainId')).toMatchObject({ result: '0x2105' });
  expect(answered).toBeLessThan(count / 2);
  await promise;
  for (const socket of sockets) socket.terminate();
});
