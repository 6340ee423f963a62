import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { Selectable } from 'kysely';
import { p256KeyPairFromSeed } from '../../../crypto/p256.ts';
import type { AppJwk } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { signingKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { Tables } from '../../tables.ts';

export type SigningKeyContext = Pick<OperationContext, 'em' | 'entropy' | 'ids' | 'vault' | 'nowMs'>;

type SigningKeyRow = Selectable<Tables['app_signing_keys']>;

const columns = [
  'id',
  'app_id',
  'public_key',
  'sealed_secret',
  'wrapped_data_key',
  'master_key_id',
  'created_at_ms',
  'retired_at_ms',
] as const satisfies readonly (keyof SigningKeyRow)[];

/** The keys of an app as a key set, the newest first. Retired keys stay in it: clients keep what they fetched. */
export async function listSigningKeys(context: SigningKeyContext, appId: string): Promise<AppJwk[]> {
  await ensureSigningKey(context, appId);
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('app_signing_keys')
    .select(['id', 'public_key'])
    .where('app_id', '=', appId)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map((row) => toJwk(row.id, publicKeyOf(row.public_key)));
}

/** SubjectPublicKeyInfo PEM of the key that signs the app's tokens at present. */
export async function currentVerificationKey(context: SigningKeyContext, appId: string): Promise<string> {
  const row = await ensureSigningKey(context, appId);
  return publicKeyOf(row.public_key).export({ format: 'pem', type: 'spki' }).toString();
}

/** Makes a new key and signs with it from now on. */
export async function rotateSigningKey(context: SigningKeyContext, appId: string): Promise<void> {
  await context.em
    .getKysely<Tables>()
    .updateTable('app_signing_keys')
    .set({ retired_at_ms: context.nowMs })
    .where('app_id', '=', appId)
    .where('retired_at_ms', 'is', null)
    .execute();
  await ensureSigningKey(context, appId);
}

/** Lends the private key that signs the app's tokens at present, and its `kid`. */
export async function withSigningKey<T>(
  context: SigningKeyContext,
  appId: string,
  use: (privateKey: KeyObject, kid: string) => Promise<T>,
): Promise<T> {
  const row = await ensureSigningKey(context, appId);
  const sealed = {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
  return context.vault.withSecret(sealed, signingKeyBinding({ id: row.id, app_id: appId }), (pkcs8) =>
    use(createPrivateKey({ key: viewOf(pkcs8), format: 'der', type: 'pkcs8' }), row.id),
  );
}

/** The public key under which tokens with this `kid` were signed for the app, or undefined. */
export async function getVerificationKey(
  { em }: Pick<SigningKeyContext, 'em'>,
  { appId, kid }: { readonly appId: string; readonly kid: string },
): Promise<KeyObject | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('app_signing_keys')
    .select('public_key')
    .where('id', '=', kid)
    .where('app_id', '=', appId)
    .executeTakeFirst();
  return row === undefined ? undefined : publicKeyOf(row.public_key);
}

// The first to need a key makes it. INVARIANT: a unique index keeps a second one from being current.
async function ensureSigningKey(context: SigningKeyContext, appId: string): Promise<SigningKeyRow> {
  const current = await getCurrentKey(context, appId);
  if (current !== undefined) return current;
  const id = context.ids.cuid2();
  const pair = p256KeyPairFromSeed(context.entropy.bytes(48));
  const secret = new Uint8Array(Buffer.from(pair.privateKeyPkcs8, 'base64'));
  const sealed = await context.vault
    .seal(secret, signingKeyBinding({ id, app_id: appId }))
    .finally(() => secret.fill(0));
  await context.em
    .getKysely<Tables>()
    .insertInto('app_signing_keys')
    .values({
      id,
      app_id: appId,
      public_key: pair.publicKey,
      sealed_secret: Buffer.from(sealed.sealedSecret),
      wrapped_data_key: Buffer.from(sealed.wrappedDataKey),
      master_key_id: sealed.masterKeyId,
      created_at_ms: context.nowMs,
      retired_at_ms: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const made = await getCurrentKey(context, appId);
  if (made === undefined) throw new Error(`app ${appId} has no signing key after one was made`);
  return made;
}

async function getCurrentKey({ em }: SigningKeyContext, appId: string): Promise<SigningKeyRow | undefined> {
  return em
    .getKysely<Tables>()
    .selectFrom('app_signing_keys')
    .select(columns)
    .where('app_id', '=', appId)
    .where('retired_at_ms', 'is', null)
    .executeTakeFirst();
}

function publicKeyOf(spki: string): KeyObject {
  return createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' });
}

function toJwk(kid: string, key: KeyObject): AppJwk {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}

// No copy: the vault wipes the bytes that it lent.
function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
