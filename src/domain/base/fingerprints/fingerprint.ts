import { canonicalJson } from '../../../engine/crypto/encoding.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { inSavepoint } from '../../savepoint.ts';
import { fingerprintKeyBinding } from '../sealed-keys/sealed-keys.ts';
import { FingerprintKeyEntity, type StoredFingerprintKey } from './fingerprint-key.entity.ts';

type ReadContext = Pick<PlanContext, 'app' | 'em' | 'keyStore'>;
type Context = Pick<OperationContext, 'app' | 'em' | 'notes' | 'keyStore' | 'ids'>;

/**
 * Computes the fingerprint of a JSON value. Equal values of one app have equal fingerprints, so the server can
 * recognize data that it does not store, such as account numbers. The fingerprint is keyed, because account numbers are
 * so few that anyone could hash them all. Creates the app's key on first use.
 *
 * @returns HMAC-SHA-256, hex.
 */
export async function fingerprint(context: Context, value: unknown): Promise<string> {
  return digest(context, await ensureKey(context), value);
}

/**
 * Computes a fingerprint to compare with stored ones, without creating a key. Returns undefined if the app has no key,
 * because then it has no stored fingerprints.
 */
export async function findFingerprint(context: ReadContext, value: unknown): Promise<string | undefined> {
  const key = await getKey(context);
  return key === null ? undefined : digest(context, key, value);
}

function digest({ keyStore }: ReadContext, key: StoredFingerprintKey, value: unknown): Promise<string> {
  return keyStore.fingerprint(
    key,
    fingerprintKeyBinding({ id: key.id, app_id: key.appId }),
    canonicalJson(value),
  );
}

// INVARIANT: a unique index allows only one key for each app, even if two requests create it at the same time.
async function ensureKey(context: Context): Promise<StoredFingerprintKey> {
  const known = await getKey(context);
  if (known !== null) return known;
  const { app, ids, keyStore } = context;
  const id = ids.cuid2();
  const sealed = await keyStore.createFingerprintKey(fingerprintKeyBinding({ id, app_id: app.id }));
  try {
    await inSavepoint(context, async (em) => {
      em.create(FingerprintKeyEntity, {
        id,
        appId: app.id,
        sealedSecret: Buffer.from(sealed.sealedSecret),
        wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
        masterKeyId: sealed.masterKeyId,
      });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
  }
  const made = await getKey(context);
  if (made === null) throw new Error(`app ${app.id} has no fingerprint key after one was made`);
  return made;
}

function getKey({ app, em }: Pick<ReadContext, 'app' | 'em'>): Promise<StoredFingerprintKey | null> {
  return em.findOne(FingerprintKeyEntity, { appId: app.id });
}
