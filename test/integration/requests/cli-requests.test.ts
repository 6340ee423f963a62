import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
import { followRequests } from '../../../src/tools/client/feeds.ts';
import { announceSandbox, findRunningSandbox } from '../../../src/tools/client/running-sandboxes.ts';
import { openSandboxClient } from '../../../src/tools/client/sandbox-client.ts';
import { attempt, call, control } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const { TMPDIR } = process.env;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-cli-'));
  process.env.TMPDIR = folder;
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  rmSync(folder, { recursive: true });
});

/** Runs a command in this process. */
async function run(...args: string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  vi.spyOn(console, 'error').mockImplementation((line: string) => void errors.push(line));
  const code = await runCommandLine(args);
  return { code, output: lines.join('\n'), errors: errors.join('\n') };
}

const announcement = () => ({
  base_url: sandbox.baseUrl,
  ca_file: sandbox.caFile,
  data: null,
  app_id: sandbox.appId,
  app_secret: sandbox.appSecret,
  prefix: sandbox.prefix,
  version: '0.1.0',
});

describe('commands without options', () => {
  test('find the only sandbox, and none after it has stopped', async () => {
    const withdraw = announceSandbox(announcement());
    expect((await run('logs', '--no-follow')).code).toBe(0);
    withdraw();
    expect(findRunningSandbox(undefined)).toBeUndefined();
  });

  test('of several take the one on port 4010; --data selects by folder; a failure names them', async () => {
    const at = (port: number, data: string | null) => ({
      ...announcement(),
      base_url: `https://127.0.0.1:${port}`,
      data,
    });
    announceSandbox(at(4011, null));
    announceSandbox(at(4012, '/srv/custos'));
    expect(findRunningSandbox(undefined)).toBeUndefined();
    await expect(run('clock', '--url', 'https://127.0.0.1:9')).resolves.toMatchObject({
      code: 1,
      errors: `custos: no sandbox responds at https://127.0.0.1:9; select a running one with --url: https://127.0.0.1:4011, https://127.0.0.1:4012`,
    });
    announceSandbox(at(4010, null));
    expect(findRunningSandbox(undefined)?.base_url).toBe('https://127.0.0.1:4010');
    const guessed = 'several sandboxes run, and the current folder does not select one';
    expect((await run('clock')).errors).toContain(
      `${guessed}; using https://127.0.0.1:4010, --url selects another`,
    );
    await expect(run('reset')).resolves.toMatchObject({ code: 2, errors: expect.stringContaining(guessed) });
    expect(findRunningSandbox('/srv/../srv/custos')?.base_url).toBe('https://127.0.0.1:4012');
  });

  test('a command that needs a database suggests the data folder of the running sandbox', async () => {
    vi.stubEnv('DATABASE_URL', undefined);
    const suggestion = 'the running sandbox has its data in data, which commands with --data can use';
    const withdraw = announceSandbox(announcement());
    expect((await run('apps', 'list')).errors).not.toContain('running sandbox');
    withdraw();
    announceSandbox({ ...announcement(), data: join(process.cwd(), 'data') });
    await expect(run('apps', 'list')).resolves.toMatchObject({
      code: 2,
      errors: expect.stringMatching(`no database is configured:[^]*\n.*${suggestion}$`),
    });
  });

  test('commands without options ignore a sandbox that was killed', () => {
    const own = process.pid;
    const dead = spawnSync('true').pid;
    Object.defineProperty(process, 'pid', { value: dead, configurable: true });
    try {
      announceSandbox(announcement());
    } finally {
      Object.defineProperty(process, 'pid', { value: own, configurable: true });
    }
    expect(findRunningSandbox(undefined)).toBeUndefined();
  });
});

test('custos listen signs with the same secret at every start, one for each data folder', async () => {
  const print = async (...flags: string[]) => (await run('listen', '--print-secret', ...flags)).output;
  const [first, again, ofFolder] = [await print(), await print(), await print('--data', folder)];
  expect(first).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(again).toBe(first);
  expect(ofFolder).not.toBe(first);
  expect(await print('--data', folder)).toBe(ofFolder);
});

describe('custos logs and why', () => {
  const address = () => ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];

  test('print the requests with the reason of each refusal', async () => {
    await control(sandbox, 'POST', '/_sandbox/reset');
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const { headers } = await attempt(sandbox, 'createWallet', { body: { chain_tipe: 'ethereum' } });
    const id = String(headers['x-request-id']);

    const { output, code } = await run('logs', '--no-follow', '--status', '4xx', ...address());
    expect(code).toBe(0);
    expect(output).toMatch(
      /^00:00:00\.000 {2}400 invalid_data {2}POST \/v1\/wallets {2}\d+ ms {2}[0-9a-f-]{36}\n +`\/chain_type` is missing in the body, which has `chain_tipe`\. Did you mean `chain_type`\?$/,
    );
    expect(output).toContain(id);

    const json = await run('logs', '--no-follow', '--wallet', wallet.id, '--json', ...address());
    expect(JSON.parse(json.output)).toMatchObject({
      operation: 'createWallet',
      status: 200,
      wallet_id: wallet.id,
    });

    const why = await run('why', id, ...address());
    expect(why.output).toContain('validation: `/chain_type` is missing in the body, which has `chain_tipe`.');
    const change = '{"body":[{"op":"move","from":"/chain_tipe","path":"/chain_type"}]}';
    expect(why.output).toContain(`custos call replayRequest ${id} 'changes:=${change}'`);
    expect(why.output).toContain(`See ${sandbox.baseUrl}/docs/errors/invalid_data`);
    expect((await run('why', id.slice(0, 8), ...address())).output).toBe(why.output);
    expect(await run('why', '00000000', ...address())).toMatchObject({
      code: 1,
      errors: 'custos: Request not found',
    });
    expect(why.output).toContain('{"chain_tipe":"ethereum"}');
    expect((await run('why', ...address())).output).toBe(why.output);
    const whole = await run('why', id, '--json', ...address());
    expect(JSON.parse(whole.output)).toMatchObject({ id, why: { kind: 'validation' } });
  });

  test.each([
    ['cut_before_commit', '0', 'cut the connection; nothing was stored'],
    ['cut_after_commit', '0', 'cut the connection after the request was executed'],
    ['truncated_body', '200', 'cut the connection within the response'],
  ])('custos why without an id shows a request that the fault rule %s cut', async (effect, status, what) => {
    await control(sandbox, 'POST', '/_sandbox/reset');
    await attempt(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_nobody' } });
    await control(sandbox, 'POST', '/_sandbox/faults', { effect, operation: 'createWallet' });
    await expect(call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).rejects.toThrow();
    await call(sandbox, 'listWallets', {});
    const { output } = await run('why', ...address());
    expect(output).toMatch(new RegExp(`^00:00:00\\.000 {2}${status} {2}POST /v1/wallets {2}`));
    expect(output).toContain(`fault: The fault rule \`fault_1\` ${what}.`);
  });

  test('custos why without an id shows the last request that has failed, of each kind', async () => {
    await control(sandbox, 'DELETE', '/_sandbox/requests');
    await call(sandbox, 'listWallets', {});
    expect((await run('why', ...address())).output).toBe('no request failed');
    expect((await run('why', '--json', ...address())).output).toBe('null');
    await attempt(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_nobody' } });
    expect((await run('why', ...address())).output).toContain('404 not_found');
    const fault = { effect: 'error', code: 'unavailable', operation: 'listWallets' };
    await control(sandbox, 'POST', '/_sandbox/faults', fault);
    await attempt(sandbox, 'listWallets', {});
    expect((await run('why', ...address())).output).toContain('503 unavailable');
    await control(sandbox, 'POST', '/_sandbox/reset');
    const failed = await run('logs', '--no-follow', '--status', 'failed', ...address());
    expect(failed.output.match(/GET \/v1\/wallets\S*/g)).toEqual([
      'GET /v1/wallets/ext_wal_nobody',
      'GET /v1/wallets',
    ]);
  });

  test('custos why says that a response is a stored one', async () => {
    const input = { body: { chain_type: 'ethereum' } } as const;
    await call(sandbox, 'createWallet', input, { idempotencyKey: 'stored' });
    const { headers } = await call(sandbox, 'createWallet', input, { idempotencyKey: 'stored' });
    const { output } = await run('why', String(headers['x-request-id']), ...address());
    expect(output.split('\n')[1]).toBe(
      'This is the stored response of an idempotency key; nothing was executed.',
    );
  });

  test('custos logs and why of an unknown request say so', async () => {
    expect(await run('why', 'nothing', ...address())).toMatchObject({
      code: 1,
      errors: 'custos: Request not found',
    });
    expect((await run('logs', '--no-follow', '--status', 'bad', ...address())).code).toBe(2);
  });

  test('follow the requests as they arrive', async () => {
    const client = openSandboxClient({ url: sandbox.baseUrl, caFile: sandbox.caFile });
    const stopping = new AbortController();
    const started = Promise.withResolvers<void>();
    const observer = { onStart: started.resolve, onDisconnect() {}, onReconnect() {}, onReset() {} };
    const feed = followRequests(
      client,
      { after: 'now', operations: ['listWallets'] },
      { signal: stopping.signal, observer },
    );
    const first = feed.next();
    await started.promise;
    await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    await call(sandbox, 'listWallets', {});
    expect((await first).value).toMatchObject({ operation: 'listWallets' });
    stopping.abort();
    expect((await feed.next()).done).toBe(true);
    client.close();
  });
});

test('custos faucet names the asset and the chain that were meant', async () => {
  const faucet = (...args: string[]) =>
    run('faucet', 'ext_wal_alice', '1', ...args, '--url', sandbox.baseUrl, '--ca-file', sandbox.caFile);
  expect((await faucet('--asset', 'USDC')).errors).toContain(
    'expected an asset of `base` (`eth`, `usdc` and `eurc`), got `USDC`; did you mean `usdc`?',
  );
  expect((await faucet('--asset', 'doubloon')).errors).toContain('any other token is named by its address');
  expect((await faucet('--chain', 'bse')).errors).toContain('got `bse`; did you mean `base`?');
});
