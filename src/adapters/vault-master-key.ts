import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
} from 'node:crypto';
import type { Entropy, KeyVault, SealBinding, SealedKey } from '../services.ts';

const CIPHER: CipherGCMTypes = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = '1';

/** A master key and the name under which wrapped data keys remember it. */
export interface MasterKey {
  id: string;
  /** 32 bytes. The vault keeps its own copy; the caller may wipe this one. */
  key: Uint8Array;
}

export interface MasterKeyVaultOptions {
  /** Every master key that data keys are still wrapped under; the first one wraps new ones. */
  masterKeys: readonly [MasterKey, ...MasterKey[]];
  entropy: Entropy;
}

/** A vault that can also move a data key under the current master key; the secret itself stays sealed. */
export interface MasterKeyVault extends KeyVault {
  readonly currentMasterKeyId: string;
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;
}

/** A secret that could not be sealed or opened. Says which master key, never what was inside. */
export class VaultError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'VaultError';
  }
}

/**
 * A vault under one or more master keys held in memory.
 *
 * Envelope encryption: AES-256-GCM with a random 96-bit nonce (NIST SP 800-38D §8.2.2) of the secret under a
 * data key of its own, and of the data key under the master key. Both are bound to wallet, app, chain type and
 * version, so that a sealed key copied to another row opens for nobody.
 *
 * @throws VaultError when a key is not 32 bytes, two keys share a name, or the self-check fails.
 */
export function createMasterKeyVault({ masterKeys, entropy }: MasterKeyVaultOptions): MasterKeyVault {
  const known = importMasterKeys(masterKeys);
  const currentMasterKeyId = masterKeys[0].id;
  checkItself(known.get(currentMasterKeyId) as KeyObject, entropy);

  const masterKey = (id: string): KeyObject => {
    const key = known.get(id);
    if (key === undefined) throw new VaultError(`master key \`${id}\` is not configured`);
    return key;
  };
  const wrap = (dataKey: Uint8Array, binding: SealBinding) => ({
    wrappedDataKey: encrypt(
      masterKey(currentMasterKeyId),
      dataKey,
      associatedData('data key', binding),
      entropy,
    ),
    masterKeyId: currentMasterKeyId,
  });
  const unwrap = (sealed: SealedKey, binding: SealBinding): Buffer =>
    decrypt(
      masterKey(sealed.masterKeyId),
      sealed.wrappedDataKey,
      associatedData('data key', binding),
      sealed.masterKeyId,
    );

  return {
    currentMasterKeyId,

    async seal(secret, binding) {
      const dataKey = entropy.bytes(KEY_BYTES);
      try {
        const sealedSecret = encrypt(dataKey, secret, associatedData('secret', binding), entropy);
        return { sealedSecret, ...wrap(dataKey, binding) };
      } finally {
        dataKey.fill(0);
      }
    },

    async withSecret(sealed, binding, use) {
      const dataKey = unwrap(sealed, binding);
      let secret: Buffer | undefined;
      try {
        secret = decrypt(dataKey, sealed.sealedSecret, associatedData('secret', binding), sealed.masterKeyId);
        return await use(secret);
      } finally {
        dataKey.fill(0);
        secret?.fill(0);
      }
    },

    async rewrap(sealed, binding) {
      const dataKey = unwrap(sealed, binding);
      try {
        return { sealedSecret: sealed.sealedSecret, ...wrap(dataKey, binding) };
      } finally {
        dataKey.fill(0);
      }
    },
  };
}

function importMasterKeys(masterKeys: readonly MasterKey[]): Map<string, KeyObject> {
  const known = new Map<string, KeyObject>();
  for (const { id, key } of masterKeys) {
    if (key.length !== KEY_BYTES) {
      throw new VaultError(`master key \`${id}\` must be ${KEY_BYTES} bytes, got ${key.length}`);
    }
    if (known.has(id)) throw new VaultError(`two master keys are named \`${id}\``);
    known.set(id, createSecretKey(key));
  }
  return known;
}

/** Seals and opens a throw-away value, and sees that a changed byte is noticed. */
function checkItself(key: KeyObject, entropy: Entropy): void {
  const value = entropy.bytes(KEY_BYTES);
  const associated = Buffer.from('self-check');
  const sealed = encrypt(key, value, associated, entropy);
  if (!decrypt(key, sealed, associated, 'self-check').equals(value))
    throw new VaultError('self-check failed');
  sealed[sealed.length - 1] = (sealed.at(-1) as number) ^ 1;
  try {
    decrypt(key, sealed, associated, 'self-check');
  } catch {
    return;
  }
  throw new VaultError('self-check failed: a changed tag was accepted');
}

/** nonce || ciphertext || tag */
function encrypt(
  key: KeyObject | Uint8Array,
  plain: Uint8Array,
  associated: Buffer,
  entropy: Entropy,
): Buffer {
  const nonce = entropy.bytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  cipher.setAAD(associated);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(
  key: KeyObject | Uint8Array,
  sealed: Uint8Array,
  associated: Buffer,
  masterKeyId: string,
): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new VaultError('a sealed key is too short');
  const tagAt = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.subarray(tagAt));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, tagAt));
  try {
    decipher.final();
    return plain;
  } catch {
    plain.fill(0);
    // CHOICE: one text for a wrong master key, a wrong binding and a damaged row: they cannot be told apart.
    throw new VaultError(`a secret sealed under master key \`${masterKeyId}\` does not open for this wallet`);
  }
}

/** Each part as its 4-byte big-endian length and its UTF-8 bytes, so that no two bindings give the same bytes. */
function associatedData(kind: 'secret' | 'data key', binding: SealBinding): Buffer {
  const parts = [`custos ${kind}`, VERSION, binding.walletId, binding.appId, binding.chainType];
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part, 'utf8');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
