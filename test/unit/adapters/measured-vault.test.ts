import { expect, test } from 'vitest';
import { sandboxVault } from '../../../src/keys/sandbox-keys.ts';
import { measuredVault } from '../../../src/observability/measured.ts';

const binding = { purpose: 'webhook-secret', rowId: 'row', appId: 'app' };

test('a vault that cannot open a secret has failed, one that refuses what was submitted has not', async () => {
  const seen: unknown[] = [];
  const vault = measuredVault(sandboxVault('11'.repeat(32)), (call, _durationMs, hasFailed) =>
    seen.push([call, hasFailed]),
  );
  const sealed = await vault.seal(Buffer.from('secret'), binding);
  await expect(vault.open(sealed, { ...binding, rowId: 'other' })).rejects.toThrow();
  await expect(vault.createUserKey(new Uint8Array(3))).rejects.toThrow();
  expect(seen).toEqual([
    ['seal', false],
    ['open', true],
    ['createUserKey', false],
  ]);
});
