import { p256KeyPairFromSeed } from '../../../crypto/p256.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { holdUser } from '../../access/user-records/find-user.ts';
import type { Tables } from '../../tables.ts';

// CHOICE: an hour from now, whatever the token that bought the key says of itself.
const LIFETIME_MS = 60 * 60_000;

// Expired keys are kept for a while so that a signature under one is refused as expired, not as unknown.
const KEEP_EXPIRED_MS = 24 * 60 * 60_000;

/** A new key of a user. Only this answer ever holds the private half. */
export interface NewUserKey {
  /** Base64 PKCS #8 DER. */
  readonly privateKey: string;
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Makes a key that signs for a user for an hour. Keys made before stay valid beside it.
 *
 * @param intentIds the only intents that the key may authorize; left out, it may sign everything.
 * @throws ApiError not_found
 */
export async function createUserKey(
  context: OperationContext,
  { userId, intentIds }: { readonly userId: string; readonly intentIds?: readonly string[] | undefined },
): Promise<NewUserKey> {
  // A key must not outlive its user: whoever deletes the user waits for this transaction, or has been quicker.
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
