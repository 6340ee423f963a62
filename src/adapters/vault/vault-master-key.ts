import type { Entropy } from '../../ports/entropy.ts';
import type { SealBinding, SealedKey } from '../../ports/key-vault.ts';
import { openAesGcm, sealAesGcm } from './aes-gcm.ts';
import { VaultError } from './vault-error.ts';

const DATA_KEY_BYTES = 32;
const VERSION = '1';

/** Wraps data keys: a key in memory or in a key management service. */
export interface MasterKey {
  /** Stored with each data key that it wraps. */
  readonly id: string;
  /** Unwrapping requires the same associated data. */
  wrap(dataKey: Uint8Array, associated: Uint8Array): Promise<Uint8Array>;
  /** Returns the data key; the caller wipes it. Throws VaultError. */
  unwrap(wrapped: Uint8Array, associated: Uint8Array): Promise<Uint8Array>;
}

export interface MasterKeyVaultOptions {
  /** All master keys in use; the first one wraps new data keys. */
  masterKeys: readonly [MasterKey, ...MasterKey[]];
  entropy: Entropy;
}

/** Seals and opens secrets. An open secret exists only during the `use` callback and is wiped afterwards. */
export interface MasterKeyVault {
  readonly currentMasterKeyId: string;
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  withSecret<T>(
    sealed: SealedKey,
    binding: SealBinding,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T>;
  /** Wraps the data key under the current master key, without opening the secret. */
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;
}

/**
 * The envelopes of a vault with one or more master keys.
 *
 * Envelope encryption: AES-256-GCM of the secret under a data key, which the master key wraps. Both are bound to the
 * row, the app, the purpose and the version, so a sealed key copied to another row cannot be opened.
 *
 * @throws VaultError when two master keys have the same id.
 */
export function createMasterKeyVault({ masterKeys, entropy }: MasterKeyVaultOptions): MasterKeyVault {
  const known = new Map(masterKeys.map((key) => [key.id, key]));
  if (known.size < masterKeys.length) throw new VaultError('expected distinct master key ids');
  const [current] = masterKeys;

  const wrap = async (dataKey: Uint8Array, binding: SealBinding) => ({
    wrappedDataKey: await current.wrap(dataKey, associatedData('data key', binding)),
    masterKeyId: current.id,
  });
  const unwrap = async (
    { wrappedDataKey, masterKeyId }: SealedKey,
    binding: SealBinding,
  ): Promise<Uint8Array> => {
    const key = known.get(masterKeyId);
    if (key === undefined) throw new VaultError(`master key \`${masterKeyId}\` is not configured`);
    const dataKey = await key.unwrap(wrappedDataKey, associatedData('data key', binding));
    if (dataKey.length === DATA_KEY_BYTES) return dataKey;
    dataKey.fill(0);
    throw new VaultError(`expected a data key of ${DATA_KEY_BYTES} bytes from master key \`${masterKeyId}\``);
  };

  return {
    currentMasterKeyId: current.id,

    async seal(secret, binding) {
      const dataKey = entropy.bytes(DATA_KEY_BYTES);
      try {
        const sealedSecret = sealAesGcm(dataKey, secret, associatedData('secret', binding), entropy);
        return { sealedSecret, ...(await wrap(dataKey, binding)) };
      } finally {
        dataKey.fill(0);
      }
    },

    async withSecret(sealed, binding, use) {
      const dataKey = await unwrap(sealed, binding);
      let secret: Buffer | undefined;
      try {
        secret = openAesGcm(dataKey, sealed.sealedSecret, associatedData('secret', binding));
        if (secret === undefined) throw new VaultError('a sealed secret cannot be opened with its data key');
        // NOTE: passes a Uint8Array because Buffer's `slice` does not copy, and callers wipe their copies.
        return await use(new Uint8Array(secret.buffer, secret.byteOffset, secret.length));
      } finally {
        dataKey.fill(0);
        secret?.fill(0);
      }
    },

    async rewrap(sealed, binding) {
      const dataKey = await unwrap(sealed, binding);
      try {
        return { sealedSecret: sealed.sealedSecret, ...(await wrap(dataKey, binding)) };
      } finally {
        dataKey.fill(0);
      }
    },
  };
}

/**
 * For each part, its length (4 bytes, big-endian) and its UTF-8 bytes. Injective: different bindings yield different
 * bytes.
 */
function associatedData(kind: 'secret' | 'data key', binding: SealBinding): Buffer {
  const { rowId, appId, purpose, authority } = binding;
  const parts = [`custos ${kind}`, VERSION, rowId, appId, purpose];
  if (authority !== undefined) parts.push(authority);
  const lengths = parts.map((part) => Buffer.byteLength(part));
  const bytes = Buffer.alloc(lengths.reduce((sum, length) => sum + 4 + length, 0));
  let at = 0;
  for (const [index, part] of parts.entries()) {
    at = bytes.writeUInt32BE(lengths[index] as number, at);
    at += bytes.write(part, at);
  }
  return bytes;
}
