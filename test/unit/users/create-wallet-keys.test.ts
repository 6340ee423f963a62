import { expect, test } from 'vitest';
import { makeIds, seededEntropy, systemEntropy } from '../../../src/adapters/runtime.ts';
import { createWalletKey, createWalletKeys } from '../../../src/domain/wallets/wallets/create-wallet.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import type { Entropy } from '../../../src/ports/runtime.ts';

const masterKey = localMasterKey('test', systemEntropy.bytes(32), systemEntropy);
const contextOf = (keyEntropy: Entropy) => ({
  app: { id: 'acme' },
  ids: makeIds(systemEntropy),
  keyStore: createKeyStore({ masterKeys: [masterKey], entropy: systemEntropy, keyEntropy }),
});

test('many keys are derived a few at a time, in the order in which they are drawn', async () => {
  const entropy = seededEntropy('keys');
  let draws = 0;
  const counted = {
    ...entropy,
    bytes: (length: number) => {
      draws += 1;
      return entropy.bytes(length);
    },
  };
  const types = Array.from({ length: 25 }, (_, index) => (['ethereum', 'tron'] as const)[index % 2]!);
  const creating = createWalletKeys(contextOf(counted), types);
  // Each key costs milliseconds; what has not been drawn has not begun.
  expect(draws).toBe(10);
  const keys = await creating;
  const alone = contextOf(seededEntropy('keys'));
  const expected = [];
  for (const type of types) expected.push((await createWalletKey(alone, type)).address);
  expect(keys.map(({ address }) => address)).toEqual(expected);
  expect(new Set(keys.map(({ walletId }) => walletId)).size).toBe(25);
});
