import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as fetchWith } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payOut, type ShopSettings } from '../../../examples/shop/pay-out.ts';
import { contractJudge, startVerifier, type VerifyOptions } from '../../../src/compose/verify.ts';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { renderVerification } from '../../../src/verify/verify-report.ts';
import { readDocument } from '../../ledger/documented.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { runCommand } from '../../support/run-custos.ts';

// What the README of the example shows: the shop behind `custos verify`, and what it uses of the contract.

// One server here breaks the contract on purpose.
pauseRecording();

const walletId = 'ext_wal_acme-ethereum';
const refund = { orderId: '2041', address: '0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb0', amount: '12.5' };
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
  const judge = contractJudge(readDocument());
  const verifier = await startVerifier({ host: '127.0.0.1', port: 0, judge, target, sandbox: undefined });
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
