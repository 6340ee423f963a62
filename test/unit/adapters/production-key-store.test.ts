import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { productionKeyStore } from '../../../src/keys/production-keys.ts';

const binding = { purpose: 'webhook-secret', rowId: 'w', appId: 'a' };
const [current, former] = [randomBytes(32), randomBytes(32)];
const keyStoreOf = (...local: Uint8Array[]) =>
  productionKeyStore({ local, transit: undefined }, systemEntropy);

test('a key that is both current and previous is one key', async () => {
  const before = await keyStoreOf(former).seal(Buffer.from('secret'), binding);
  const keyStore = keyStoreOf(current, former, current, former);
  const sealed = await keyStore.seal(Buffer.from('secret'), binding);
  expect(sealed.masterKeyId).toBe(keyStoreOf(current).currentMasterKeyId);
  for (const each of [before, sealed]) {
    expect(Buffer.from(await keyStore.open(each, binding)).toString()).toBe('secret');
  }
});

test('key ids are sixteen digits of a digest', () => {
  const name = keyStoreOf(current).currentMasterKeyId;
  expect(name).toMatch(/^[0-9a-f]{16}$/);
  expect(name).not.toBe(keyStoreOf(former).currentMasterKeyId);
  expect(current.toString('hex')).not.toContain(name);
});

test('the key of a key management service precedes those in memory', () => {
  const transit = { url: 'http://127.0.0.1:9', key: 'custos', token: 'x' };
  expect(productionKeyStore({ local: [current], transit }, systemEntropy).currentMasterKeyId).toBe(
    'transit:custos',
  );
});
