import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Entropy } from '../ports/entropy.ts';
import { openAesGcm, sealAesGcm } from './aes-gcm.ts';
import { VaultError } from './vault-error.ts';
import type { MasterKey } from './vault-master-key.ts';

const KEY_BYTES = 32;

/**
 * A master key held in memory. The key is copied; the caller may wipe its own.
 *
 * @throws VaultError when it is not 32 bytes or the self-check fails.
 */
export function localMasterKey(id: string, keyBytes: Uint8Array, entropy: Entropy): MasterKey {
  if (keyBytes.length !== KEY_BYTES) {
    throw new VaultError(`master key \`${id}\` must be ${KEY_BYTES} bytes, got ${keyBytes.length}`);
  }
  const key = createSecretKey(keyBytes);
  checkItself(key, entropy);
  return {
    id,
    async wrap(dataKey, associated) {
      return sealAesGcm(key, dataKey, associated, entropy);
    },
    async unwrap(wrapped, associated) {
      const dataKey = openAesGcm(key, wrapped, associated);
      // CHOICE: one text for a wrong master key, a wrong binding and a damaged row: they cannot be told apart.
      if (dataKey === undefined) {
        throw new VaultError(`a secret sealed under master key \`${id}\` does not open for this wallet`);
      }
      return dataKey;
    },
  };
}

/** Seals and opens a throw-away value, and sees that a changed byte is noticed. */
function checkItself(key: KeyObject, entropy: Entropy): void {
  const value = entropy.bytes(KEY_BYTES);
  const associated = Buffer.from('self-check');
  const sealed = sealAesGcm(key, value, associated, entropy);
  if (!openAesGcm(key, sealed, associated)?.equals(value)) throw new VaultError('self-check failed');
  sealed[sealed.length - 1] = (sealed.at(-1) as number) ^ 1;
  if (openAesGcm(key, sealed, associated) !== undefined) {
    throw new VaultError('self-check failed: a changed tag was accepted');
  }
}
