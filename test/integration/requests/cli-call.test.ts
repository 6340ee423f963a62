import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyMessage } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bobKey } from '../../../mocks/authorization-keys.ts';
import { call, control } from '../../support/call.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
const folder = temporaryFolder();
beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** What `custos exec` and `custos env` set. */
const env = () => ({
  CUSTOS_BASE_URL: sandbox.baseUrl,
  CUSTOS_APP_ID: sandbox.appId,
  CUSTOS_APP_SECRET: sandbox.appSecret,
  CUSTOS_CA_FILE: sandbox.caFile,
});

async function custosCall(...args: string[]) {
  const { code, stdout, stderr } = await runCommand(['call', ...args], { env: env() });
  return { code, stdout, stderr, body: stdout.startsWith('{') ? JSON.parse(stdout) : undefined };
}

const hello = ['method=personal_sign', 'params.message=Hello', 'params.encoding=utf-8'];

describe('custos call', () => {
  test('custos call signs a message as the owner of a wallet in one line', async () => {
    const { code, body } = await custosCall('walletRpc', 'ext_wal_alice', '--sign', 'alice', ...hello);
    expect(code).toBe(0);
    const { body: wallet } = await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    const { signature } = body.data;
    const address = wallet.address as `0x${string}`;
    expect(await verifyMessage({ address, message: 'Hello', signature })).toBe(true);
  });

  test('custos call covers the idempotency key and the expiry by the signature', async () => {
    const options = ['--sign', 'alice', '--idempotency-key', 'first', '--expires-in', '1m'];
    const first = await custosCall('walletRpc', 'ext_wal_alice', ...options, ...hello);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(await custosCall('walletRpc', 'ext_wal_alice', ...options, ...hello)).toEqual(first);
  });

  test('custos call prints a refusal, its hint to standard error, and exits with 1', async () => {
    const unsigned = await custosCall('walletRpc', 'ext_wal_alice', ...hello);
    expect(unsigned).toMatchObject({ code: 1, body: { data: { hint: expect.any(String) } } });
    const [hint, next] = unsigned.stderr.split('\n');
    expect(hint).toBe(`custos: ${unsigned.body.data.hint}`);
    expect(next).toMatch(/^custos: `custos why [0-9a-f-]{36}` explains it$/);
    expect((await custosCall('walletRpc', 'ext_wal_alice', '--sign', 'bob', ...hello)).code).toBe(1);
  });

  test('custos call says that the connection was cut, and what explains it', async () => {
    const fault = { effect: 'cut_after_commit', operation: 'createWallet', count: 1 };
    await control(sandbox, 'POST', '/_sandbox/faults', fault);
    const cut = await custosCall('createWallet', 'chain_type=ethereum');
    expect(cut).toMatchObject({ code: 1, stdout: '' });
    const how = 'cut the connection without a response; if a fault rule did, `custos why` names it';
    expect(cut.stderr).toBe(`custos: ${sandbox.baseUrl} ${how}\n`);
  });

  test('custos call sends query parameters, path parameters by name, and JSON', async () => {
    const created = await custosCall('createWallet', 'chain_type=stellar', 'policy_ids:=[]', '--json');
    expect(created.stdout.trim().split('\n')).toHaveLength(1);
    const listed = await custosCall('listWallets', 'chain_type=stellar', 'limit:=1');
    expect(listed.body.data).toEqual([created.body]);
    const { body } = await custosCall('getWallet', `wallet_id=${created.body.id}`);
    expect(body).toEqual(created.body);
    const { body: gas } = await custosCall(
      'getAppGasSpend',
      `wallet_ids:=["${created.body.id}"]`,
      ...['start_timestamp:=1767225600', 'end_timestamp:=1767312000'],
    );
    expect(gas).toBeDefined();
  });

  test('custos call starts from a file and signs with keys from files', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = join(folder, 'key.pem');
    writeFileSync(pem, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const own = join(folder, 'bob.txt');
    writeFileSync(own, `wallet-auth:${bobKey.privateKey}\n`);
    const body = join(folder, 'wallet.json');
    writeFileSync(body, JSON.stringify({ chain_type: 'ethereum', owner: { public_key: bobKey.publicKey } }));
    const { body: wallet } = await custosCall('createWallet', '--body', body, 'external_id=of-bob');
    expect(wallet).toMatchObject({ chain_type: 'ethereum' });
    const rpc = ['walletRpc', 'ext_wal_of-bob', ...hello];
    expect((await custosCall(...rpc, '--key', own, '--key', pem)).code).toBe(0);
    expect((await custosCall(...rpc, '--key', pem)).code).toBe(1);
    expect(await custosCall(...rpc, '--key', body)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected a P-256 private key'),
    });
  });

  test('-i prints status and headers; --curl prints a request that works in a shell', async () => {
    const { stdout } = await custosCall('getWallet', 'ext_wal_alice', '-i');
    expect(stdout).toMatch(/^200 OK\nx-request-id: [0-9a-f-]{36}\n[\s\S]*\n\n\{/);
    const options = ['--sign', 'alice', '--curl', '-H', 'x-note: it\'s "quoted"'];
    const { stdout: curl } = await custosCall('walletRpc', 'ext_wal_alice', ...options, ...hello);
    expect(curl).toMatch(/^curl --cacert \S+ -X POST /);
    // The words as a shell reads them: the server runs in this process, so curl itself would wait for it forever.
    const words = execFileSync('sh', ['-c', curl.replace(/^curl/, "printf '%s\\n'")], { encoding: 'utf8' });
    expect(words.split('\n')).toContain('x-note: it\'s "quoted"');
    const headers = [...words.matchAll(/^-H\n([^:]+): (.*)$/gm)].map(([, name, value]) => [name, value]);
    const sent = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, method: 'POST', path: '/v1/wallets/ext_wal_alice/rpc' },
      headers: Object.fromEntries(headers),
      body: /^-d\n(.*)$/m.exec(words)?.[1] ?? '',
    });
    expect(sent.statusCode).toBe(200);
    await sent.body.dump();
  });

  test('custos call calls operations of the control plane', async () => {
    const { body } = await custosCall('setClock', 'advance_ms:=1000');
    expect(body).toMatchObject({ frozen: true });
  });

  test.each([
    [['walletRpcs', 'x'], 'no operation is called `walletRpcs`; did you mean `walletRpc`'],
    [['gibberish'], 'no operation is called `gibberish`; see /docs'],
    [['getWallet'], 'wallet_id: expected a value, got none; usage: custos call getWallet <wallet_id>'],
    [['getWallet', 'a', 'b'], '`getWallet` takes the path parameters wallet_id; expected name=value'],
    [['createWallet', 'chain_type:=ethereum'], 'chain_type: expected JSON, got `ethereum`'],
    [['walletRpc', 'x', '--sign', 'mallory'], '--sign: expected alice, bob, carol, got `mallory`'],
    [['listWallets', '--sign', 'alice'], '`listWallets` does not accept authorization signatures'],
    [['getWallet', 'a', '--user', 'token'], "`getWallet` does not accept users' tokens"],
    [['listWallets', '--body', '/dev/null'], '--body: `listWallets` has no body'],
    [['createWallet', '--body', '/absent'], '--body: `/absent` cannot be read'],
    [['createWallet', '-H', 'nothing'], '--header: expected `name: value`, got `nothing`'],
  ])('custos call refuses %j', async (args, message) => {
    const { code, stderr } = await custosCall(...args);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
