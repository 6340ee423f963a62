import { expect, test } from 'vitest';
import { sandboxKeyStore } from '../../../src/keys/sandbox-keys.ts';
import { measuredKeyStore } from '../../../src/observability/measured.ts';

const binding = { purpose: 'webhook-secret', rowId: 'row', appId: 'app' };

test('a key store that cannot open a secret has failed, one that refuses what was submitted has not', async () => {
  const seen: unknown[] = [];
  const keyStore = measuredKeyStore(sandboxKeyStore('11'.repeat(32)), (call, _durationMs, hasFailed) =>
    seen.push([call, hasFailed]),
  );
  const sealed = await keyStore.seal(Buffer.from('secret'), binding);
  await expect(keyStore.open(sealed, { ...binding, rowId: 'other' })).rejects.toThrow();
  await expect(keyStore.createUserKey(new Uint8Array(3))).rejects.toThrow();
  expect(seen).toEqual([
    ['seal', false],
    ['open', true],
    ['createUserKey', false],
  ]);
});
