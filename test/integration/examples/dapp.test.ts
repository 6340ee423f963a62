import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startSandbox } from '../../../src/testing/testing.ts';

// The example as its README says, in a folder of its own, with the viem of the tests.

test('the dapp deploys, sends by a wallet, waits for the receipt and sees the event', async () => {
  const root = join(import.meta.dirname, '../../..');
  const folder = mkdtempSync(join(tmpdir(), 'custos-dapp-'));
  await using sandbox = await startSandbox({ rpcPort: 0, confirmAfterMs: 0 });
  await sandbox.faucet('ext_wal_acme-ethereum', { chain: 'base', amount: '1' });
  cpSync(join(root, 'examples/dapp'), folder, { recursive: true });
  symlinkSync(join(root, 'test/node_modules'), join(folder, 'node_modules'));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['main.ts'], {
    cwd: folder,
    env: {
      ...process.env,
      CUSTOS_BASE_URL: sandbox.baseUrl,
      CUSTOS_APP_ID: sandbox.appId,
      CUSTOS_APP_SECRET: sandbox.appSecret,
      CUSTOS_RPC_URL: sandbox.rpcUrl,
      NODE_EXTRA_CA_CERTS: sandbox.caFile,
    },
  });
  rmSync(folder, { recursive: true });
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^deployed at 0x\w{40}, count 0\n(?:event: 0x\w{40} counted to 1\n)?0x\w{64}: success, count 1\n(?:event: 0x\w{40} counted to 1\n)?$/,
  );
  expect(stdout).toContain('counted to 1');
});
