import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { administerApps } from '../../../src/admin/administration.ts';
import { attempt } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('a sandbox whose clock stands still notices a secret that a command has rotated', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'custos-rotated-'));
  try {
    await using sandbox = await startSandbox({ dataFolder: folder });
    const frozenMs = sandbox.clock.now();
    const status = async (secret: string) =>
      (await attempt({ ...sandbox, appSecret: secret }, 'listWallets', {})).status;
    expect(await status(sandbox.appSecret)).toBe(200);
    // Valid for another second.
    const { secret } = await administerApps({ kind: 'folder', folder }).rotateSecret(sandbox.appId, 1_000);
    expect(await status(secret)).toBe(200);
    // Credentials are cached for two seconds.
    await wait(2_100);
    expect(await status(sandbox.appSecret)).toBe(401);
    expect(await status(secret)).toBe(200);
    expect(sandbox.clock.now()).toBe(frozenMs);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
