import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { SandboxCoverage, SandboxEventCounts } from '../../../src/sandbox/generated/schemas.ts';
import { attempt, call, control } from '../../support/call.ts';
import { runCommand } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  sandbox = await startSandbox();
  folder = mkdtempSync(join(tmpdir(), 'custos-coverage-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandbox[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await sandbox.reset();
  const address = { origin: sandbox.baseUrl, path: '/_sandbox/requests', method: 'DELETE' as const };
  await sandbox.dispatcher.request(address).then(({ body }) => body.dump());
});

const coverage = (...flags: string[]) =>
  runCommand(['coverage', '--url', sandbox.baseUrl, '--ca-file', sandbox.caFile, ...flags]);

interface CoverageJson {
  readonly requests: number;
  readonly rows: readonly { readonly name: string; readonly count: number }[];
}

const coveredIn = ({ rows }: CoverageJson): string[] =>
  rows.filter(({ count }) => count > 0).map(({ name }) => name);

async function useSandbox(): Promise<void> {
  await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await attempt(sandbox, 'createWallet', { body: { chain_tipe: 'ethereum' } });
  const body = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const;
  const path = { wallet_id: 'ext_wal_alice' };
  await call(sandbox, 'walletRpc', { path, body }, { signWith: [aliceKey.privateKey] });
  await attempt(sandbox, 'walletRpc', { path, body });
  // A quorum of two, under a policy that allows messages.
  const treasury = { wallet_id: 'ext_wal_treasury' };
  const signWith = [aliceKey.privateKey, bobKey.privateKey];
  await call(sandbox, 'walletRpc', { path: treasury, body }, { signWith });
}

describe('custos coverage', () => {
  test('custos coverage shows what the requests to a sandbox used of the contract', async () => {
    await useSandbox();
    const { stdout, code } = await coverage('--format', 'json');
    expect(code).toBe(0);
    const found = JSON.parse(stdout) as CoverageJson;
    expect(found.requests).toBe(5);
    expect(coveredIn(found).sort()).toEqual([
      'createWallet 200',
      'createWallet 400',
      'createWallet 400 invalid_data',
      'operation createWallet',
      'operation walletRpc',
      'policy allowed',
      'quorum met_by_one_key',
      'quorum met_by_several_keys',
      'quorum unsigned',
      'walletRpc 200',
      'walletRpc 401',
      'walletRpc 401 missing_or_empty_authorization_header',
      'walletRpc request WalletRpcRequest.method=personal_sign',
      'walletRpc response WalletRpcResponse.method=personal_sign',
    ]);
  });

  test('custos coverage is measured by the control plane, too', async () => {
    await useSandbox();
    const flags = ['--format', 'json', '--of', 'contract'];
    const json = JSON.parse((await coverage(...flags)).stdout) as CoverageJson & {
      figures: Record<string, { covered: number; total: number }>;
    };
    const measured = async (query: string) => {
      const { status, body } = await control(sandbox, 'GET', `/_sandbox/coverage${query}`);
      expect({ status, body }).toMatchObject({ status: 200, body: { requests: 5, undocumented: [] } });
      return body as unknown as SandboxCoverage;
    };
    const whole = await measured('');
    const figures = whole.figures.map(({ dimension, covered, total }) => [dimension, { covered, total }]);
    expect(json.figures).toMatchObject(Object.fromEntries(figures));
    expect(figures).toHaveLength(Object.keys(json.figures).length);
    expect(whole.rows.filter(({ count }) => count > 0).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['policy allowed', 'quorum met_by_several_keys']),
    );
    const { operations, rows } = await measured('?operation=createWallet');
    expect(operations.find(({ operation }) => operation === 'createWallet')).toMatchObject({
      requests: 2,
      covered: 3,
      total: rows.length - 1,
    });
    expect(coveredIn({ requests: 5, rows })).toEqual([
      'operation createWallet',
      'createWallet 200',
      'createWallet 400',
      'createWallet 400 invalid_data',
    ]);
  });

  test('custos coverage shows the same of the HAR that the sandbox exports', async () => {
    await useSandbox();
    const har = join(folder, 'recorded.har');
    writeFileSync(har, JSON.stringify((await control(sandbox, 'GET', '/_sandbox/requests.har')).body));
    const ofFile = await runCommand(['coverage', '--har', har, '--format', 'json']);
    expect(JSON.parse(ofFile.stdout)).toEqual(JSON.parse((await coverage('--json')).stdout));
  });

  test('custos coverage reads archives with a byte order mark, and bodies in files beside them, as Playwright writes them', async () => {
    const place = join(folder, 'playwright');
    mkdirSync(place);
    const har = join(place, 'recorded.har');
    const body = (name: string, mimeType = 'application/json') => ({ mimeType, size: 10, _file: name });
    const refusal = JSON.stringify({ error: 'no', code: 'invalid_data' });
    writeFileSync(join(place, 'a1b2.json'), refusal);
    writeFileSync(join(folder, 'outside.json'), refusal);
    symlinkSync(join(folder, 'outside.json'), join(place, 'link.json'));
    const measure = async (...contents: object[]) => {
      const entries = contents.map((content) => ({
        request: { method: 'GET', url: 'https://wallets.example.com/v1/wallets/w', headers: [] },
        response: { status: 400, headers: [], content },
      }));
      writeFileSync(har, `\uFEFF${JSON.stringify({ log: { version: '1.2', entries } })}`);
      const { stdout, stderr } = await runCommand(['coverage', '--har', har, '--format', 'json']);
      return { covered: coveredIn(JSON.parse(stdout)).includes('getWallet 400 invalid_data'), stderr };
    };
    expect(await measure(body('a1b2.json'), body('absent.png', 'image/png'))).toEqual({
      covered: true,
      stderr: '',
    });
    for (const name of ['../outside.json', join(folder, 'outside.json'), 'link.json', '.', 'absent.json']) {
      const { covered, stderr } = await measure(body(name));
      expect(covered).toBe(false);
      expect(stderr).toContain(`recorded.har: 1 of its bodies are missing and not counted`);
      expect(stderr).toContain(JSON.stringify(name));
    }
    writeFileSync(har, Buffer.from('504b030414000000', 'hex'));
    expect((await runCommand(['coverage', '--har', har])).stderr).toContain('got a ZIP file');
  });

  test('custos coverage fails below a threshold, and by a baseline that only shrinks', async () => {
    await useSandbox();
    const baseline = join(folder, 'uncovered.txt');
    expect((await coverage('--fail-under', 'operations=1')).code).toBe(0);
    expect(await coverage('--fail-under', '90')).toMatchObject({ code: 1 });
    expect((await coverage('--baseline', baseline, '--update-baseline')).code).toBe(0);
    expect((await coverage('--baseline', baseline)).code).toBe(0);

    await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    const grown = await coverage('--baseline', baseline);
    expect(grown.code).toBe(1);
    expect(grown.stdout).toContain('to be deleted from it:\n  operation getWallet\n  getWallet 200');
    expect((await coverage('--baseline', baseline, '--update-baseline')).code).toBe(0);
    expect(readFileSync(baseline, 'utf8')).not.toContain('getWallet 200\n');

    // What is not covered any more is not added again.
    writeFileSync(baseline, readFileSync(baseline, 'utf8').replace('listWallets 200\n', ''));
    const shrunk = await coverage('--baseline', baseline, '--update-baseline');
    expect(shrunk).toMatchObject({ code: 1 });
    expect(shrunk.stdout).toContain('not in the baseline:\n  listWallets 200');
  });

  test('custos coverage writes several reports at once', async () => {
    await useSandbox();
    const files = Object.fromEntries(
      ['html', 'junit', 'sarif', 'github'].map((name) => [name, join(folder, name)]),
    );
    const flags = Object.entries(files).flatMap(([name, file]) => ['--format', `${name}=${file}`]);
    const { stdout, code } = await coverage(...flags, '--format', 'text');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Of the 2 operations that you call\n {2}statuses of operations +4 \/ \d+/);
    expect(stdout).toMatch(/Of the contract\n {2}operations called +2 \/ \d+/);
    expect(Object.values(files).filter((file) => !existsSync(file))).toEqual([]);
    expect(readFileSync(files.html!, 'utf8')).toContain('<!doctype html>');
    expect(JSON.parse(readFileSync(files.sarif!, 'utf8'))).toMatchObject({ version: '2.1.0' });
    expect(readFileSync(files.junit!, 'utf8')).toContain('<testcase classname="error codes"');
  });

  test('distinguishes what cannot be measured from invalid usage', async () => {
    expect(await coverage()).toMatchObject({
      code: 3,
      stderr: 'custos: expected requests to operations of the contract, found none\n',
    });
    expect((await runCommand(['coverage', '--har', join(folder, 'absent.har')])).code).toBe(3);
    expect((await runCommand(['coverage', '--url', 'http://127.0.0.1:1'])).code).toBe(3);
    for (const usage of [
      ['--fail-under', 'much'],
      ['--format', 'pdf'],
      ['--update-baseline'],
      ['--url', 'x'],
    ]) {
      expect((await runCommand(['coverage', ...usage])).code).toBe(2);
    }
  });
});

test('the events of a sandbox are counted by type, with those that endpoints acknowledged', async () => {
  await using receiver = await startWebhookReceiver();
  const counts = async () =>
    ((await control(sandbox, 'GET', '/_sandbox/event_counts')).body as SandboxEventCounts).data;
  const trigger = () => control(sandbox, 'POST', '/_sandbox/events', { type: 'wallet.archived' });
  expect(await counts()).toEqual([]);
  await trigger();
  expect(await counts()).toEqual([{ type: 'wallet.archived', recorded: 1, acknowledged: 0 }]);
  await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  await trigger();
  await receiver.count(1);
  await expect.poll(counts).toContainEqual({ type: 'wallet.archived', recorded: 2, acknowledged: 1 });
});

test('targets in every form of RFC 9112 are in the archive and the coverage', async () => {
  const host = new URL(sandbox.baseUrl).host;
  for (const target of [
    `https://${host}/v1/wallets`,
    '//double',
    '/v1/%zz',
    '/v1/%',
    '*',
    `/${'a'.repeat(8_000)}`,
  ]) {
    expect(await statusOf(target)).toBeGreaterThanOrEqual(200);
  }
  for (const path of ['/_sandbox/requests.har', '/_sandbox/coverage']) {
    const { statusCode, body } = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path, method: 'GET' as const },
    });
    expect({ statusCode, text: (await body.text()).slice(0, 100) }).toMatchObject({ statusCode: 200 });
  }
});

/** The status of a request whose target is written as it is. */
function statusOf(target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(sandbox.baseUrl);
    const socket = connect({ host: hostname, port: Number(port), ca: sandbox.caPem, servername: '' }, () => {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    });
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.once('end', () => resolve(Number(text.split(' ')[1])));
    socket.once('error', reject);
  });
}
