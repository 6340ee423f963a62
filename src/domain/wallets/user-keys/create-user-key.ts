import type { Voucher, VoucherContent } from '../../../authorization/user-vouchers.ts';
import { HpkeError } from '../../../crypto/hpke.ts';
import { p256PublicKeyPoint } from '../../../crypto/p256.ts';
import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { NewUserKey as DrawnKey, UserLogin } from '../../../ports/key-vault.ts';
import { findVoucherKey } from '../../access/key-quorums/voucher-keys.ts';
import { lockUser } from '../../access/user-records/find-user.ts';
import { readPublicKey } from '../../base/public-keys/read-public-key.ts';
import { noteRecovery } from '../recovery/note-recovery.ts';
import { isRevokedSession } from '../tokens/find-session.ts';
import { invalidToken } from '../tokens/verify-customer-token.ts';
import { UserKeyEntity } from './user-key.entity.ts';

// CHOICE: one hour, regardless of the expiry of the token that was exchanged.
const LIFETIME_MS = 60 * 60_000;

// CHOICE: a key ends this long before what the vault vouches for, so that the vault does not refuse a request that was
// accepted just before and had to wait. A key that the vault vouches for lives shorter by this.
const VOUCHER_MARGIN_MS = 60_000;

// Expired keys are kept for a while, so that their signatures are refused as expired and not as unknown.
const KEEP_EXPIRED_MS = 24 * 60 * 60_000;

/** A new user key. Only this result ever contains the private key, encrypted if the request names a recipient. */
export interface NewUserKey {
  readonly privateKey: DrawnKey['privateKey'];
  /** Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Creates a key that signs for a user for one hour. Earlier keys stay valid.
 *
 * @param sessionId the session that the key ends with; without it, the key ends by time alone.
 * @param recipientPublicKey the key that the private key is encrypted to; without it, it is returned as it is.
 * @param loginToken a token of the app's own login, by which the vault may vouch for the key.
 * @param intentIds the only intents the key may authorize; without it, the key may sign everything.
 * @throws ApiError not_found; invalid_data for a recipient that cannot be read; missing_or_invalid_token for a frozen user and a revoked session
 */
export async function createUserKey(
  context: OperationContext,
  {
    userId,
    sessionId,
    intentIds,
    recipientPublicKey,
    loginToken,
  }: {
    readonly userId: string;
    readonly sessionId?: string | undefined;
    readonly intentIds?: readonly string[] | undefined;
    readonly recipientPublicKey?: string | undefined;
    readonly loginToken?: string | undefined;
  },
): Promise<NewUserKey> {
  // Locks the user, so that a concurrent deletion cannot leave a key without its user.
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen) throw invalidToken('its user is frozen');
  if (sessionId !== undefined && (await isRevokedSession(context, sessionId))) {
    throw invalidToken('its session was revoked');
  }
  const endsAtMs = context.nowMs + LIFETIME_MS;
  const login = await loginFor(context, loginToken, endsAtMs);
  const { publicKey, privateKey, voucher } = await drawKey(context, recipientPublicKey, login);
  if (login !== undefined && voucher === undefined) {
    context.log.warn(
      { app_id: context.app.id },
      'the signer does not accept a token that this server accepts',
    );
  }
  const expiresAtMs =
    voucher === undefined ? endsAtMs : Math.min(endsAtMs, endOf(voucher) - VOUCHER_MARGIN_MS);
  await context.em.nativeDelete(UserKeyEntity, {
    userId,
    expiresAtMs: { $lte: context.nowMs - KEEP_EXPIRED_MS },
  });
  context.em.create(UserKeyEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    userId,
    sessionId: sessionId ?? null,
    publicKey,
    intentIds: intentIds === undefined ? null : [...intentIds],
    voucher: voucher === undefined ? null : JSON.stringify(voucher),
    createdAtMs: context.nowMs,
    expiresAtMs,
  });
  await context.em.flush();
  // A key for certain intents does not cover a wallet.
  if (intentIds === undefined) await noteRecovery(context, userId);
  return { privateKey, expiresAtMs };
}

function endOf({ content }: Voucher): number {
  return (JSON.parse(content) as VoucherContent).expiresAtMs;
}

/** What the vault needs to vouch for a key; undefined where it does not verify the app's login. */
async function loginFor(
  context: OperationContext,
  token: string | undefined,
  expiresAtMs: number,
): Promise<UserLogin | undefined> {
  const { app, vault } = context;
  if (token === undefined || vault.loginApps?.includes(app.id) !== true) return undefined;
  const key = await findVoucherKey(context);
  if (key === undefined) return undefined;
  return { appId: app.id, token, expiresAtMs, voucherKey: { id: key.id, seal: key.seal } };
}

async function drawKey(
  { vault }: OperationContext,
  recipient: string | undefined,
  login: UserLogin | undefined,
): Promise<DrawnKey> {
  if (recipient === undefined) return vault.createUserKey(undefined, login);
  const pointer = '/recipient_public_key';
  try {
    return await vault.createUserKey(p256PublicKeyPoint(readPublicKey(recipient, pointer)), login);
  } catch (error) {
    if (error instanceof HpkeError) throw invalidField(pointer, error.message);
    throw error;
  }
}
