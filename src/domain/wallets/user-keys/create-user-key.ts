import { p256KeyPairFromSeed } from '../../../crypto/p256.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { holdUser } from '../../access/user-records/find-user.ts';
import type { Tables } from '../../tables.ts';

// CHOICE: one hour, regardless of the expiry of the token that was exchanged.
const LIFETIME_MS = 60 * 60_000;

// Expired keys are kept for a while, so that their signatures are refused as expired and not as unknown.
const KEEP_EXPIRED_MS = 24 * 60 * 60_000;

/** A new user key. Only this result ever contains the private key. */
export interface NewUserKey {
  /** Base64 PKCS #8 DER. */
  readonly privateKey: string;
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Creates a key that signs for a user for one hour. Earlier keys stay valid.
 *
 * @param intentIds the only intents the key may authorize; without it, the key may sign everything.
 * @throws ApiError not_found
 */
export async function createUserKey(
  context: OperationContext,
  { userId, intentIds }: { readonly userId: string; readonly intentIds?: readonly string[] | undefined },
): Promise<NewUserKey> {
  // Locks the user, so that a concurrent deletion cannot leave a key without its user.
  await holdUser(context, userId);
  const pair = p256KeyPairFromSeed(context.entropy.bytes(48));
  const expiresAtMs = context.nowMs + LIFETIME_MS;
  const database = context.em.getKysely<Tables>();
  await database
    .deleteFrom('user_keys')
    .where('user_id', '=', userId)
    .where('expires_at_ms', '<=', context.nowMs - KEEP_EXPIRED_MS)
    .execute();
  await database
    .insertInto('user_keys')
    .values({
      id: context.ids.cuid2(),
      app_id: context.app.id,
      user_id: userId,
      public_key: pair.publicKey,
      intent_ids: intentIds === undefined ? null : JSON.stringify(intentIds),
      created_at_ms: context.nowMs,
      expires_at_ms: expiresAtMs,
    })
    .execute();
  return { privateKey: pair.privateKeyPkcs8, expiresAtMs };
}
