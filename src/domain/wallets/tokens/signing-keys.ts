import { createPublicKey, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { AppJwk } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import { signingKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { AppSigningKeyEntity, type StoredSigningKey } from './app-signing-key.entity.ts';

export type SigningKeyContext = Pick<OperationContext, 'em' | 'ids' | 'vault' | 'nowMs'>;

/** An app's keys as a JWKS, the newest first. Retired keys stay in it, because clients cache the set. */
export async function listSigningKeys(context: SigningKeyContext, appId: string): Promise<AppJwk[]> {
  await ensureSigningKey(context, appId);
  const keys = await context.em.find(
    AppSigningKeyEntity,
    { appId },
    { orderBy: { createdAtMs: 'desc', id: 'desc' } },
  );
  return keys.map((key) => toJwk(key.id, publicKeyOf(key.publicKey)));
}

/** SubjectPublicKeyInfo PEM of the current signing key. */
export async function currentVerificationKey(context: SigningKeyContext, appId: string): Promise<string> {
  const key = await ensureSigningKey(context, appId);
  return publicKeyOf(key.publicKey).export({ format: 'pem', type: 'spki' }).toString();
}

/** Creates a new key, which signs from now on. */
export async function rotateSigningKey(context: SigningKeyContext, appId: string): Promise<void> {
  const current = await getCurrentKey(context, appId);
  if (current !== null) {
    current.retiredAtMs = context.nowMs;
    await context.em.flush();
  }
  await ensureSigningKey(context, appId);
}

/** Signs claims with the app's current key. Source: RFC 7515 §3.1, compact serialization; ES256 of RFC 7518 §3.4. */
export async function signClaims(
  context: SigningKeyContext,
  appId: string,
  claims: Readonly<Record<string, string | number>>,
): Promise<string> {
  const key = await ensureSigningKey(context, appId);
  const head = { alg: 'ES256', typ: 'JWT', kid: key.id };
  // base64url(header) || "." || base64url(claims) || "." || base64url(signature)
  const signed = `${base64UrlJson(head)}.${base64UrlJson(claims)}`;
  const binding = signingKeyBinding({ id: key.id, app_id: appId });
  const signature = await context.vault.signToken(key, binding, signed);
  return `${signed}.${Buffer.from(signature).toString('base64url')}`;
}

function base64UrlJson(value: object): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url');
}

// HOT: every request with a user's token needs it; the entity manager takes ten times the CPU.
const selectPublicKey = prepareQuery<{ id: string; appId: string }, { public_key: string }>(
  (database, { id, appId }) =>
    database
      .selectFrom('app_signing_keys')
      .select('public_key')
      .where('id', '=', id)
      .where('app_id', '=', appId),
);

/** The public key under which tokens with this `kid` were signed for the app, or undefined. */
export async function getVerificationKey(
  { em }: Pick<SigningKeyContext, 'em'>,
  { appId, kid }: { readonly appId: string; readonly kid: string },
): Promise<KeyObject | undefined> {
  const {
    rows: [key],
  } = await selectPublicKey(em, { id: kid, appId });
  return key && publicKeyOf(key.public_key);
}

// The key is created on first use. INVARIANT: a unique index allows only one current key.
async function ensureSigningKey(context: SigningKeyContext, appId: string): Promise<StoredSigningKey> {
  const current = await getCurrentKey(context, appId);
  if (current !== null) return current;
  const id = context.ids.cuid2();
  const { sealed, publicKey } = await context.vault.createTokenKey(signingKeyBinding({ id, app_id: appId }));
  try {
    await inSavepoint(context.em, async (em) => {
      em.create(AppSigningKeyEntity, {
        id,
        appId,
        publicKey,
        sealedSecret: Buffer.from(sealed.sealedSecret),
        wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
        masterKeyId: sealed.masterKeyId,
        createdAtMs: context.nowMs,
        retiredAtMs: null,
      });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
  }
  const made = await getCurrentKey(context, appId);
  if (made === null) throw new Error(`app ${appId} has no signing key after one was made`);
  return made;
}

function getCurrentKey({ em }: SigningKeyContext, appId: string): Promise<StoredSigningKey | null> {
  return em.findOne(AppSigningKeyEntity, { appId, retiredAtMs: null });
}

/** By their text. What verifies tokens keeps what it has made of such an object, too. */
const publicKeys = new LRUCache<string, KeyObject>({ max: 1000 });

function publicKeyOf(spki: string): KeyObject {
  const known = publicKeys.get(spki);
  if (known !== undefined) return known;
  const made = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' });
  publicKeys.set(spki, made);
  return made;
}

function toJwk(kid: string, key: KeyObject): AppJwk {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}
