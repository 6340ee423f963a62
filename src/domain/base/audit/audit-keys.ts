import type { SqlEntityManager } from '@mikro-orm/sql';
import { type NoteVerifier, signedNote } from '../../../engine/crypto/tlog/checkpoint.ts';
import type { KeyStore, SealedKey } from '../../../ports/key-store.ts';
import type { Entropy } from '../../../ports/runtime.ts';
import { lockName } from '../../../storage/locks.ts';
import { auditKeyBinding } from '../sealed-keys/sealed-keys.ts';
import { AuditKeyEntity, type StoredAuditKey } from './audit.entity.ts';

const KEY_BYTES = 32;

interface Context {
  readonly em: SqlEntityManager;
  readonly keyStore: KeyStore;
}

interface CreatingContext extends Context {
  readonly entropy: Entropy;
  inUnit<T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T>;
}

/** Creates the keys of the audit log if it has none. These keys never change. */
export async function ensureAuditKeys({ em, keyStore, entropy, inUnit }: CreatingContext): Promise<void> {
  if ((await em.count(AuditKeyEntity)) > 0) return;
  // CHOICE: each log has its own name. It is not a URL, because a log need not be served under one.
  const origin = `custos.invalid/audit/${Buffer.from(entropy.bytes(8)).toString('hex')}`;
  const signing = await keyStore.createLogKey(auditKeyBinding({ id: 'checkpoints' }));
  const secret = entropy.bytes(KEY_BYTES);
  const digesting = await keyStore
    .seal(secret, auditKeyBinding({ id: 'digests' }))
    .finally(() => secret.fill(0));
  const publicKey = Buffer.from(signing.publicKey).toString('base64');
  const keys = [
    { ...columnsOf(signing.sealed), id: 'checkpoints', appId: '', origin, publicKey },
    { ...columnsOf(digesting), id: 'digests', appId: '', origin, publicKey: null },
  ] as const;
  await inUnit(async (unit) => {
    await lockName(unit, 'audit keys', 'audit keys');
    if ((await unit.count(AuditKeyEntity)) > 0) return;
    for (const key of keys) unit.create(AuditKeyEntity, key);
    await unit.flush();
  });
}

function columnsOf({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey) {
  return {
    sealedSecret: Buffer.from(sealedSecret),
    wrappedDataKey: Buffer.from(wrappedDataKey),
    masterKeyId,
  };
}

/**
 * Opens the key that digests requests. Because the digest is keyed, readers of the log cannot guess a request and
 * confirm the guess.
 */
export async function openDigestKey({ em, keyStore }: Context): Promise<Uint8Array> {
  const key = await findKey(em, 'digests');
  return keyStore.open(key, auditKeyBinding(key));
}

/** Returns the verifier of the log's checkpoints; undefined before the log has keys. */
export async function getVerifier(em: SqlEntityManager): Promise<NoteVerifier | undefined> {
  const key = await em.findOne(AuditKeyEntity, { id: 'checkpoints' });
  return key === null ? undefined : verifierOf(key);
}

/**
 * Signs a string with the signing key of the log.
 *
 * @param textOf returns the string to sign, given the origin of the log.
 * @returns the signed note.
 */
export async function signNote(
  { em, keyStore }: Context,
  textOf: (origin: string) => string,
): Promise<string> {
  const key = await findKey(em, 'checkpoints');
  const verifier = verifierOf(key);
  const text = textOf(verifier.name);
  return signedNote(text, verifier, await keyStore.signCheckpoint(key, auditKeyBinding(key), text));
}

async function findKey(em: SqlEntityManager, id: StoredAuditKey['id']): Promise<StoredAuditKey> {
  const key = await em.findOne(AuditKeyEntity, { id });
  if (key === null) throw new Error('the audit log has no keys');
  return key;
}

function verifierOf({ origin, publicKey }: StoredAuditKey): NoteVerifier {
  return { name: origin, publicKey: Buffer.from(publicKey!, 'base64') };
}
