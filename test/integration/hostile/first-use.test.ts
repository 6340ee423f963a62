import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { makeIds, systemClock, systemEntropy } from '../../../src/adapters/runtime.ts';
import { anyAddress, createWebhookSender } from '../../../src/adapters/webhook-http.ts';
import { adminOperations } from '../../../src/admin/admin-operations.ts';
import { loadOnce } from '../../../src/engine/load-once.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { root } from '../../house/source-files.ts';

// What is loaded on first use may fail to load, e.g. while the process has no file descriptors left.

// The undici of the server: the folder of the tests has one of its own.
const undici = createRequire(join(root, 'src', 'main.ts')).resolve('undici');

afterEach(() => {
  vi.doUnmock(undici);
  vi.resetModules();
});

async function serve(listener: Parameters<typeof createServer>[1]): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('a loader that failed is called again; one that succeeded is not', async () => {
  let calls = 0;
  const load = loadOnce(async () => {
    calls += 1;
    if (calls === 1) throw new Error('EMFILE');
    return calls;
  });
  expect(load.begun()).toBeUndefined();
  await expect(load()).rejects.toThrow('EMFILE');
  expect(load.begun()).toBeUndefined();
  expect(await Promise.all([load(), load()])).toEqual([2, 2]);
  expect(await load.begun()).toBe(2);
  expect(await load()).toBe(2);
});

test('a webhook is delivered although the first one could not load its client', async () => {
  let isBroken = true;
  vi.doMock(undici, async () => {
    if (isBroken) throw new Error('EMFILE: too many open files');
    return vi.importActual(undici);
  });
  const port = await serve((request, response) => request.resume().on('end', () => response.end()));
  const sender = createWebhookSender({ guard: anyAddress });
  const send = () =>
    sender.send({
      ...{ url: `http://127.0.0.1:${port}/`, headers: {}, bodyText: '{}', timeoutMs: 5_000 },
      event: { type: 'wallet.archived', appId: 'acme' },
    });
  expect(await send()).toMatchObject({ status: undefined, failure: 'connection_failed' });
  isBroken = false;
  vi.resetModules();
  expect(await send()).toMatchObject({ status: 200 });
  await sender.close();
});

test('simulated chains and exchange work although their file could not be opened at first', async () => {
  const root = mkdtempSync(join(tmpdir(), 'custos-first-use-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const folder = join(root, 'later');
  const clock = systemClock;
  const chains = openSimulatedChains({
    file: join(folder, 'chain.sqlite'),
    clock,
    confirmAfterMs: undefined,
  });
  const exchange = chains.exchange({
    ids: makeIds(systemEntropy),
    prices: fixedPrices,
    supports: () => true,
  });
  const deposit = { address: `0x${'11'.repeat(20)}`, tokenAddress: null, rawAmount: 5n };
  const status = () => exchange.statusOf('unknown', '0x00');

  await expect(chains.used()).rejects.toThrow();
  await expect(chains.fund('eip155:1', deposit)).rejects.toThrow();
  await expect(status()).rejects.toThrow(/directory does not exist/);
  mkdirSync(folder);
  await chains.fund('eip155:1', deposit);
  expect(await chains.total('eip155:1', null)).toBe(5n);
  expect(await chains.used()).toEqual(['eip155:1']);
  expect(await status().catch((error: Error) => error.message)).not.toMatch(/directory does not exist/);
  await chains.close();
});

test('the operations of the admin port work although their first request could not load them', async () => {
  let isBroken = true;
  const options = {
    hasCells: false,
    parts: () => ({
      analysis: { analyze: () => expect.unreachable() },
      context: {
        ...{ clock: systemClock, entropy: systemEntropy, ids: makeIds(systemEntropy) },
        ...{ read: () => expect.unreachable(), change: () => expect.unreachable() },
      },
    }),
    clock: systemClock,
    log: silentLog,
    newRequestId: () => 'request',
    get adminHost() {
      if (isBroken) throw new Error('EMFILE: too many open files');
      return '127.0.0.1';
    },
  };
  const [operations] = adminOperations(options);
  const port = await serve((request, response) => {
    operations?.handle(request, response).catch(() => response.writeHead(500).end());
  });
  const ask = async () => (await fetch(`http://127.0.0.1:${port}/policies/nonsense`)).status;
  expect(await ask()).toBe(500);
  isBroken = false;
  expect(await ask()).toBe(404);
});
