import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Entropy } from '../../ports/entropy.ts';
import { openAesGcm, sealAesGcm } from './aes-gcm.ts';
import { VaultError } from './vault-error.ts';
import type { MasterKey } from './vault-master-key.ts';

const KEY_BYTES = 32;

/**
 * A master key in memory. Copies the key bytes, so the caller may wipe them.
 *
 * @throws VaultError when the key is not 32 bytes or the self-test fails.
 */
export function localMasterKey(id: string, keyBytes: Uint8Array, entropy: Entropy): MasterKey {
  if (keyBytes.length !== KEY_BYTES) {
    throw new VaultError(`expected ${KEY_BYTES} bytes in master key \`${id}\`, got ${keyBytes.length}`);
  }
  const key = createSecretKey(keyBytes);
  runSelfTest(key, entropy);
  return {
    id,
    async wrap(dataKey, associated) {
      return sealAesGcm(key, dataKey, associated, entropy);
    },
    async unwrap(wrapped, associated) {
      const dataKey = openAesGcm(key, wrapped, associated);
      // CHOICE: one message for a wrong master key, a wrong binding and a damaged row, which look the same.
      if (dataKey === undefined) {
        throw new VaultError(`a secret sealed under master key \`${id}\` cannot be opened for this wallet`);
      }
      return dataKey;
    },
  };
}

/** Seals and opens a random value and checks that a modified tag is refused. */
function runSelfTest(key: KeyObject, entropy: Entropy): void {
  const value = entropy.bytes(KEY_BYTES);
  const associated = Buffer.from('self-check');
  const sealed = sealAesGcm(key, value, associated, entropy);
  if (!openAesGcm(key, sealed, associated)?.equals(value)) throw new VaultError('self-test failed');
  sealed[sealed.length - 1] = (sealed.at(-1) as number) ^ 1;
  if (openAesGcm(key, sealed, associated) !== undefined) {
    throw new VaultError('self-test failed: a modified tag was accepted');
  }
}
