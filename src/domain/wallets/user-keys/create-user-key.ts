import { p256KeyPairFromSeed } from '../../../crypto/p256.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockUser } from '../../access/user-records/find-user.ts';
import { noteRecovery } from '../recovery/note-recovery.ts';
import { isRevokedSession } from '../tokens/find-session.ts';
import { invalidToken } from '../tokens/verify-customer-token.ts';
import { UserKeyEntity } from './user-key.entity.ts';

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
 * @param sessionId the session that the key ends with; without it, the key ends by time alone.
 * @param intentIds the only intents the key may authorize; without it, the key may sign everything.
 * @throws ApiError not_found; missing_or_invalid_token for a frozen user and a revoked session
 */
export async function createUserKey(
  context: OperationContext,
  {
    userId,
    sessionId,
    intentIds,
  }: {
    readonly userId: string;
    readonly sessionId?: string | undefined;
    readonly intentIds?: readonly string[] | undefined;
  },
): Promise<NewUserKey> {
  // Locks the user, so that a concurrent deletion cannot leave a key without its user.
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen) throw invalidToken('its user is frozen');
  if (sessionId !== undefined && (await isRevokedSession(context, sessionId))) {
    throw invalidToken('its session was revoked');
  }
  const pair = p256KeyPairFromSeed(context.entropy.bytes(48));
  const expiresAtMs = context.nowMs + LIFETIME_MS;
  await context.em.nativeDelete(UserKeyEntity, {
    userId,
    expiresAtMs: { $lte: context.nowMs - KEEP_EXPIRED_MS },
  });
  context.em.create(UserKeyEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    userId,
    sessionId: sessionId ?? null,
    publicKey: pair.publicKey,
    intentIds: intentIds === undefined ? null : [...intentIds],
    createdAtMs: context.nowMs,
    expiresAtMs,
  });
  await context.em.flush();
  // A key for certain intents does not cover a wallet.
  if (intentIds === undefined) await noteRecovery(context, userId);
  return { privateKey: pair.privateKeyPkcs8, expiresAtMs };
}
