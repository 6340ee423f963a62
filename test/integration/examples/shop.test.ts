import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Agent, fetch as fetchWith } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payOut, type ShopSettings } from '../../../examples/shop/pay-out.ts';
import { startVerifier, type VerifyOptions } from '../../../src/compose/verify.ts';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { renderVerification } from '../../../src/tools/verify/verify-report.ts';
import { readDocument } from '../../ledger/documented.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { runCommand } from '../../support/run-custos.ts';

// What the README of the example shows: the shop behind `custos verify`, and what it uses of the contract.

// One server here breaks the contract on purpose.
pauseRecording();

const walletId = 'ext_wal_acme-ethereum';
const refund = { orderId: '2041', address: '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0', amount: '12.5' };
let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  sandbox = await startSandbox();
  folder = mkdtempSync(join(tmpdir(), 'custos-shop-'));
  await sandbox.faucet(walletId, { chain: 'base', amount: '1' });
  await sandbox.faucet(walletId, { chain: 'base', asset: 'usdc', amount: '100' });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandbox.close();
});

/** Pays a refund through the proxy of `custos verify`. */
async function payThrough(target: VerifyOptions['target']) {
  const document = readDocument();
  const verifier = await startVerifier({ host: '127.0.0.1', port: 0, document, target, sandbox: undefined });
  const dispatcher = new Agent({ connect: { ca: readFileSync(verifier.caFile, 'utf8') } });
  const { appId, appSecret } = sandbox;
  const fetch = ((url: string, init: object) =>
    fetchWith(url, { ...init, dispatcher })) as unknown as ShopSettings['fetch'] & object;
  try {
    await payOut({ baseUrl: verifier.url, appId, appSecret, walletId, fetch }, refund);
    return verifier.verification();
  } finally {
    await dispatcher.destroy();
    await verifier.close();
  }
}

test('the shop and a sandbox keep the contract, and its coverage is measured', async () => {
  const verification = await payThrough({
    url: new URL(sandbox.baseUrl),
    ca: sandbox.caPem,
    host: undefined,
  });
  expect(verification).toMatchObject({ judged: 1, findings: [] });
  const file = (name: string) => join(folder, name);
  const formats = ['--format', `html=${file('coverage.html')}`, '--format', `junit=${file('coverage.xml')}`];
  const address = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
  expect(await runCommand(['coverage', ...address, ...formats])).toMatchObject({ code: 0 });
  expect(readFileSync(file('coverage.html'), 'utf8')).toContain('transferFromWallet');
  expect(readFileSync(file('coverage.xml'), 'utf8')).toContain('operation transferFromWallet');
});

test('a wallet service that breaks the contract is found, although the shop does not notice', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"a1","status":"done"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const verification = await payThrough({ url, ca: undefined, host: undefined });
    expect(verification.findings.map(({ rule, place }) => `${rule} ${place}`)).toEqual([
      'response-invalid transferFromWallet 200',
    ]);
    expect(renderVerification('junit', verification)).toContain('type="response-invalid"');
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

// With the program that the build wrote, as `npm install` links it.
test.runIf(process.env.TEST_LONG === '1')(
  'the pipeline writes its reports, and fails with its tests',
  { timeout: 180_000 },
  () => {
    const root = join(import.meta.dirname, '..', '..', '..');
    const shop = join(folder, 'shop');
    cpSync(join(root, 'examples', 'shop'), shop, { recursive: true });
    const bin = join(shop, 'node_modules', '.bin');
    mkdirSync(bin, { recursive: true });
    symlinkSync(root, join(shop, 'node_modules', 'custos'));
    symlinkSync(join(root, 'node_modules', 'vitest'), join(shop, 'node_modules', 'vitest'));
    symlinkSync(join(root, 'dist', 'custos.js'), join(bin, 'custos'));
    symlinkSync(join(root, 'node_modules', '.bin', 'vitest'), join(bin, 'vitest'));
    const env = { HOME: folder, TMPDIR: folder, PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin` };
    const pipeline = () => spawnSync('sh', ['ci.sh'], { cwd: shop, env, encoding: 'utf8' });
    const report = (name: string) => readFileSync(join(shop, 'reports', name), 'utf8');
    const { status, stdout, stderr } = pipeline();
    expect({ status, stdout, stderr }).toMatchObject({ status: 0 });
    expect(report('tests.xml')).toMatch(/<testsuites [^>]*tests="4" failures="0" errors="0"/);
    expect(report('tests.xml')).toContain('a refund whose response was lost is paid once');
    expect(report('contract.xml')).toMatch(/<testsuite [^>]*failures="0"/);
    expect(report('coverage.xml')).toContain('operation transferFromWallet');
    expect(report('coverage.html')).toContain('transferFromWallet');

    const tests = join(shop, 'pay-out.test.ts');
    writeFileSync(tests, readFileSync(tests, 'utf8').replace("toBe('87500000')", "toBe('1')"));
    expect(pipeline().status).not.toBe(0);
    expect(report('tests.xml')).toMatch(/failures="1"/);
  },
);
