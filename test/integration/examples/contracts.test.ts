import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startSandbox } from '../../../src/testing/testing.ts';

// A project of Hardhat, which has packages of its own: `npm install` in its folder.

const folder = join(import.meta.dirname, '../../../examples/contracts');
const hardhat = join(folder, 'node_modules/hardhat/internal/cli/bootstrap.js');

test.skipIf(!existsSync(hardhat))(
  'the tests of a Hardhat project pass on a chain of the sandbox',
  async () => {
    await using sandbox = await startSandbox({
      clock: 'frozen',
      rpcPort: 0,
      confirmAfterMs: 0,
      seedData: false,
    });
    const { stdout } = await promisify(execFile)(process.execPath, [hardhat, 'test', '--network', 'custos'], {
      cwd: folder,
      env: {
        ...process.env,
        CUSTOS_RPC_URL: sandbox.rpcUrl,
        HARDHAT_DISABLE_TELEMETRY_PROMPT: 'true',
        CI: '1',
      },
    });
    expect(stdout).toContain('3 passing');
  },
);
