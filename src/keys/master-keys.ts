import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  KeyObject,
} from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { sealName } from '../engine/authorization/policy-seals.ts';
import { changeDigests, type QuorumRecord, type SentSeal } from '../engine/authorization/quorum-records.ts';
import { UnauthorizedUseError } from '../engine/authorization/signed-evidence.ts';
import type { SealBinding, SealedKey } from '../ports/key-store.ts';
import type { Entropy } from '../ports/runtime.ts';

const CIPHER: CipherGCMTypes = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts with AES-256-GCM under a random 96-bit nonce (NIST SP 800-38D §8.2.2). Returns nonce || ciphertext || tag.
 */
function sealAesGcm(
  key: KeyObject | Uint8Array,
  plain: Uint8Array,
  associated: Uint8Array,
  entropy: Entropy,
): Buffer {
  const nonce = entropy.bytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, importKey(key), nonce);
  cipher.setAAD(associated);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Decrypts the output of `sealAesGcm`. The caller wipes the result. Returns undefined when the key, the associated data
 * or the bytes do not match.
 */
function openAesGcm(
  key: KeyObject | Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const tagAt = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, importKey(key), sealed.subarray(0, NONCE_BYTES), {
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
    return undefined;
  }
}

// NOTE: creating a cipher from the raw bytes of a key takes four times as long as from an imported key.
function importKey(key: KeyObject | Uint8Array): KeyObject {
  return key instanceof KeyObject ? key : createSecretKey(key);
}

/**
 * Thrown when a secret could not be sealed or opened. The message may name the id of the master key, never the secret.
 */
export class KeyStoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'KeyStoreError';
  }
}

/**
 * Thrown when the key management service cannot be reached, or refuses. The sealed secret may be intact, and the next
 * attempt may succeed.
 */
export class MasterKeyUnavailableError extends KeyStoreError {
  /** Marks the error for `isUnavailable` in `errors.ts`. */
  readonly isUnavailable = true;
  readonly unavailable = 'the key management service';

  constructor(message: string) {
    super(message);
    this.name = 'MasterKeyUnavailableError';
  }
}

const DATA_KEY_BYTES = 32;
const VERSION = '1';

/** A key that wraps data keys. The key is in memory or in a key management service. */
export interface MasterKey {
  /** The id that is stored with each wrapped data key. */
  readonly id: string;
  /** Encrypts a data key. `unwrap` needs the same associated data. */
  wrap(dataKey: Uint8Array, associated: Uint8Array): Promise<Uint8Array>;
  /**
   * Returns the data key. The caller wipes it.
   *
   * @throws KeyStoreError
   */
  unwrap(wrapped: Uint8Array, associated: Uint8Array): Promise<Uint8Array>;
}

export interface MasterKeyEnvelopesOptions {
  /** All master keys in use; the first one wraps new data keys. */
  masterKeys: readonly [MasterKey, ...MasterKey[]];
  entropy: Entropy;
}

/** Seals and opens secrets. An opened secret exists only during the callback `use` and is wiped afterwards. */
export interface MasterKeyEnvelopes {
  readonly currentMasterKeyId: string;
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  withSecret<T>(
    sealed: SealedKey,
    binding: SealBinding,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T>;
  /** Wraps the data key again, under the current master key. The secret is not opened. */
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;
}

/**
 * Returns the envelopes for these master keys.
 *
 * Envelope encryption: AES-256-GCM encrypts the secret under a data key, and the master key wraps the data key. Both
 * are bound to the row, the app, the purpose and the version. A sealed key that was copied to another row therefore
 * does not open.
 *
 * @throws KeyStoreError when two master keys have the same id.
 */
export function createMasterKeyEnvelopes({
  masterKeys,
  entropy,
}: MasterKeyEnvelopesOptions): MasterKeyEnvelopes {
  const known = new Map(masterKeys.map((key) => [key.id, key]));
  if (known.size < masterKeys.length) throw new KeyStoreError('expected distinct master key ids');
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
    if (key === undefined) throw new KeyStoreError(`master key \`${masterKeyId}\` is not configured`);
    const dataKey = await key.unwrap(wrappedDataKey, associatedData('data key', binding));
    if (dataKey.length === DATA_KEY_BYTES) return dataKey;
    dataKey.fill(0);
    throw new KeyStoreError(
      `expected a data key of ${DATA_KEY_BYTES} bytes from master key \`${masterKeyId}\``,
    );
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
        if (secret === undefined)
          throw new KeyStoreError('a sealed secret cannot be opened with its data key');
        // NOTE: passes a Uint8Array, because the `slice` of a Buffer does not copy, and callers keep copies after the
        // wipe.
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
 * Encodes the associated data: for each part, its length (4 bytes, big-endian) and its UTF-8 bytes. Different bindings
 * always yield different bytes.
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

const KEY_BYTES = 32;

/**
 * Returns a master key that is in memory. It copies the bytes, so the caller may wipe them.
 *
 * @throws KeyStoreError when the key is not 32 bytes or the self-test fails.
 */
export function localMasterKey(id: string, keyBytes: Uint8Array, entropy: Entropy): MasterKey {
  if (keyBytes.length !== KEY_BYTES) {
    throw new KeyStoreError(`expected ${KEY_BYTES} bytes in master key \`${id}\`, got ${keyBytes.length}`);
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
      // CHOICE: a wrong master key, a wrong binding and a damaged row cannot be distinguished, so they share one
      // message.
      if (dataKey === undefined) {
        throw new KeyStoreError(
          `a secret sealed under master key \`${id}\` cannot be opened for this wallet`,
        );
      }
      return dataKey;
    },
  };
}

/**
 * Seals and opens a random value, and checks that a modified tag is refused.
 *
 * @throws KeyStoreError
 */
function runSelfTest(key: KeyObject, entropy: Entropy): void {
  const value = entropy.bytes(KEY_BYTES);
  const associated = Buffer.from('self-check');
  const sealed = sealAesGcm(key, value, associated, entropy);
  if (!openAesGcm(key, sealed, associated)?.equals(value)) throw new KeyStoreError('self-test failed');
  sealed[sealed.length - 1] = (sealed.at(-1) as number) ^ 1;
  if (openAesGcm(key, sealed, associated) !== undefined) {
    throw new KeyStoreError('self-test failed: a modified tag was accepted');
  }
}

/** Opens the seal of a policy or a key quorum, and returns the name of the secret in it (`sealName`). */
type OpenAnySeal = (seal: SentSeal, binding: Required<SealBinding>) => Promise<string>;

const MAX_OPENED = 1_000;

/**
 * Returns a function that opens seals and caches the names of their secrets, so that the key management service is not
 * called for each signature.
 */
export function sealOpener(envelopes: MasterKeyEnvelopes): OpenAnySeal {
  const opened = new LRUCache<string, string>({ max: MAX_OPENED });
  return async ({ sealedSecret, wrappedDataKey, masterKeyId }, { purpose, rowId, appId, authority }) => {
    const key = JSON.stringify([
      ...[purpose, appId, rowId, authority],
      ...[sealedSecret, wrappedDataKey, masterKeyId],
    ]);
    const known = opened.get(key);
    if (known !== undefined) return known;
    const sealed = sealedOf({ sealedSecret, wrappedDataKey, masterKeyId });
    const name = await envelopes.withSecret(sealed, { purpose, rowId, appId, authority }, sealName);
    opened.set(key, name);
    return name;
  };
}

/** Decodes a sealed secret that a call contains as base64. */
export function sealedOf({ sealedSecret, wrappedDataKey, masterKeyId }: SentSeal): SealedKey {
  return { sealedSecret: bytesOf(sealedSecret), wrappedDataKey: bytesOf(wrappedDataKey), masterKeyId };
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

/**
 * The purpose in the seal of a key quorum: a random secret that opens only with the digest of the quorum's changes. It
 * proves that this key store has verified them.
 */
export const QUORUM_CHANGES = 'key-quorum-changes';

/**
 * Requires that the key store verified every change of these key quorums when the change was made, in this order and
 * with these members.
 *
 * @throws UnauthorizedUseError for a missing seal; KeyStoreError for a seal that does not open.
 */
export async function requireVerifiedChanges(
  records: readonly QuorumRecord[],
  appId: string,
  open: OpenAnySeal,
): Promise<void> {
  for (const record of records) {
    if (record.changes.length === 0) continue;
    const { seal, base } = record;
    if (seal === undefined) {
      throw new UnauthorizedUseError(`expected the seal of the changes of the key quorum \`${base.id}\``);
    }
    const authority = changeDigests(record).at(-1)!;
    await open(seal, { purpose: QUORUM_CHANGES, rowId: base.id, appId, authority });
  }
}
