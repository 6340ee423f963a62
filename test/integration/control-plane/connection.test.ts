import { readFileSync } from 'node:fs';
import { Agent } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { treasuryQuorum } from '../../../mocks/key-quorums.ts';
import type { SandboxConnection } from '../../../src/sandbox/generated/schemas.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

async function connectionOf(sandbox: TestSandbox): Promise<SandboxConnection> {
  const { statusCode, body } = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: '/_sandbox/connection', method: 'GET' },
  });
  expect(statusCode).toBe(200);
  return (await body.json()) as SandboxConnection;
}

test('the connection is all that a client needs', async () => {
  await using sandbox = await startSandbox({ prefix: 'acme' });
  const connection = await connectionOf(sandbox);
  const { base_url: origin, app_id: appId, app_secret: secret, header_prefix: prefix } = connection;
  const dispatcher = new Agent({ connect: { ca: readFileSync(connection.ca_file!) } });
  onTestFinished(() => dispatcher.destroy());
  const authorization = `Basic ${Buffer.from(`${appId}:${secret}`).toString('base64')}`;
  const headers = { authorization, [`${prefix}-app-id`]: appId, 'content-type': 'application/json' };
  const listed = await dispatcher.request({ origin, path: '/v1/wallets', method: 'GET', headers });
  expect(listed.statusCode).toBe(200);
  expect(((await listed.body.json()) as { data: unknown[] }).data).toHaveLength(4);

  const base = connection.rpc_urls.find(({ chain }) => chain === 'base');
  expect(base?.chain_id).toBe('eip155:8453');
  const called = await dispatcher.request({
    ...{ origin: new URL(base!.url).origin, path: new URL(base!.url).pathname, method: 'POST', headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId' }),
  });
  expect(await called.body.json()).toMatchObject({ result: '0x2105' });

  const docs = await dispatcher.request({
    origin,
    path: new URL(connection.docs_url).pathname,
    method: 'GET',
  });
  expect(docs.statusCode).toBe(200);
  await docs.body.dump();
  expect(connection.signers.map(({ name }) => name)).toEqual(['alice', 'bob', 'carol']);
  expect(connection.signers.map((each) => each.public_key)).toEqual(treasuryQuorum.public_keys);
});

test('chains of real nodes and chains without JSON-RPC are not listed', async () => {
  await using sandbox = await startSandbox({
    rpc: [{ caip2: 'eip155:8453', urls: ['https://127.0.0.1:1'] }],
  });
  const { rpc_urls: urls } = await connectionOf(sandbox);
  const names = urls.map(({ chain }) => chain);
  expect(names).toContain('solana');
  expect(names).not.toContain('base');
  expect(names).not.toContain('tron');
});

test('with a port for JSON-RPC, the addresses are those of the port', async () => {
  await using sandbox = await startSandbox({ rpcPort: 0 });
  const { rpc_urls: urls } = await connectionOf(sandbox);
  const { url } = urls.find(({ chain }) => chain === 'base')!;
  expect(url).toBe(`${sandbox.rpcUrl}/base`);
  expect(new URL(url).protocol).toBe('http:');
});
