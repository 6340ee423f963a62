import type { Voucher, VoucherContent } from '../../../engine/authorization/user-vouchers.ts';
import { HpkeError } from '../../../engine/crypto/hpke.ts';
import { p256PublicKeyPoint } from '../../../engine/crypto/p256.ts';
import { invalidField, notFound } from '../../../errors.ts';
import type {
  AuthenticateWalletIntentsRequest,
  AuthenticateWalletsRequest,
  EncryptedAuthorizationKey,
  WalletAuthenticateIntentsResponse,
  WalletAuthenticateWithJwtResponse,
} from '../../../generated/schemas.ts';
import type { NewUserKey as DrawnKey, UserLogin } from '../../../ports/key-store.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { readPublicKey } from '../../access/key-quorums/resolve-owner.ts';
import { findVoucherKey } from '../../access/key-quorums/voucher-keys.ts';
import { getLogin, lockUser } from '../../access/user-records/find-user.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { noteRecovery } from '../recovery/wallet-recovery.ts';
import { claimsToBeOurs, isRevokedSession, verifyAccessToken } from '../tokens/access-tokens.ts';
import { invalidToken, verifyCustomerToken } from '../tokens/verify-custom-jwt.ts';
import { walletView } from '../wallets/find-wallet.ts';
import { type WalletRow, walletColumns } from '../wallets/wallet.entity.ts';
import { UserKeyEntity } from './user-key.entity.ts';

/** The user whom a token authenticates, and the session of the token. */
export interface AuthenticatedUser {
  readonly userId: string;
  /** The session of the token; undefined for a token of the app's own login. */
  readonly sessionId?: string;
}

/**
 * Authenticates the user of a token. The token is an access token of the service, or a token of the app's own login
 * whose user id claim is the `custom_user_id` of a linked account.
 *
 * Call it from plans, because it may fetch the app's key set. The user may be deleted before the operation's
 * transaction begins.
 *
 * @throws ApiError missing_or_invalid_token, failed_to_fetch_jwks_uri_document; not_found for a user who does not
 * exist.
 */
export async function authenticateUser(context: PlanContext, userJwt: string): Promise<AuthenticatedUser> {
  if (claimsToBeOurs(userJwt, context.prefix)) {
    const session = await verifyAccessToken(context, userJwt);
    if (session === undefined) throw invalidToken('it is not a live access token of this app');
    return session;
  }
  const { settings } = await findApp(context.em, context.app.id);
  const { jwt_auth: jwtAuth } = readAppSettings(settings);
  if (jwtAuth === undefined) throw invalidToken('the app has no JWT authentication configured');
  const subject = await verifyCustomerToken(context, jwtAuth, userJwt);
  const login = await getLogin(context, { type: 'custom_auth', subject });
  if (login === undefined) throw notFound('User');
  if (login.waitsUntilMs !== undefined) {
    throw invalidToken(`its account can be used from ${new Date(login.waitsUntilMs).toISOString()}`);
  }
  return { userId: login.userId };
}

// CHOICE: a user key is valid for one hour, regardless of the expiry of the exchanged token.
const LIFETIME_MS = 60 * 60_000;

// CHOICE: a key with a voucher ends this long before the voucher. With equal ends, the key store could refuse a request
// that was accepted just before and had to wait.
const VOUCHER_MARGIN_MS = 60_000;

// Expired keys are kept for a while, so that their signatures are refused as expired instead of unknown.
const KEEP_EXPIRED_MS = 24 * 60 * 60_000;

/** A new user key. Only this result contains the private key, encrypted if the request names a recipient. */
interface NewUserKey {
  readonly privateKey: DrawnKey['privateKey'];
  /** When the key expires, Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Creates a key that signs for a user for at most one hour. Earlier keys stay valid.
 *
 * @param sessionId the session with which the key ends. Without it, the key ends by time alone.
 * @param recipientPublicKey encrypts the private key. Without it, the private key is returned in plain text.
 * @param loginToken a token of the app's own login, with which the key store may vouch for the key.
 * @param intentIds the only intents that the key may authorize. Without them, the key may sign everything.
 * @throws ApiError not_found; invalid_data for a recipient key that cannot be read; missing_or_invalid_token for a
 * frozen user and a revoked session.
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
  // Lock the user, so that a concurrent deletion cannot leave a key without a user.
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
  // A key that is limited to intents does not sign for a wallet.
  if (intentIds === undefined) await noteRecovery(context, userId);
  return { privateKey, expiresAtMs };
}

function endOf({ content }: Voucher): number {
  return (JSON.parse(content) as VoucherContent).expiresAtMs;
}

/**
 * Returns the data that the key store needs to vouch for a key. Undefined without a token, without a voucher key, or if
 * the key store does not verify the app's login.
 */
async function loginFor(
  context: OperationContext,
  token: string | undefined,
  expiresAtMs: number,
): Promise<UserLogin | undefined> {
  const { app, keyStore } = context;
  if (token === undefined || keyStore.loginApps?.includes(app.id) !== true) return undefined;
  const key = await findVoucherKey(context);
  if (key === undefined) return undefined;
  return { appId: app.id, token, expiresAtMs, voucherKey: { id: key.id, seal: key.seal } };
}

async function drawKey(
  { keyStore }: OperationContext,
  recipient: string | undefined,
  login: UserLogin | undefined,
): Promise<DrawnKey> {
  if (recipient === undefined) return keyStore.createUserKey(undefined, login);
  const pointer = '/recipient_public_key';
  try {
    return await keyStore.createUserKey(p256PublicKeyPoint(readPublicKey(recipient, pointer)), login);
  } catch (error) {
    if (error instanceof HpkeError) throw invalidField(pointer, error.message);
    throw error;
  }
}

/** A user's private key in wire form: encrypted to the caller's key, or in plain text when the caller gave none. */
type HandedOverKey =
  | { readonly encrypted_authorization_key: EncryptedAuthorizationKey }
  | { readonly authorization_key: string };

/** Converts a private key to wire form. */
function handOverKey({ privateKey }: NewUserKey): HandedOverKey {
  if (typeof privateKey === 'string') return { authorization_key: privateKey };
  return {
    encrypted_authorization_key: {
      encryption_type: 'HPKE',
      encapsulated_key: Buffer.from(privateKey.encapsulatedKey).toString('base64'),
      ciphertext: Buffer.from(privateKey.ciphertext).toString('base64'),
    },
  };
}

// KYSELY: the condition has a subquery of memberships.

/** CHOICE: the list has no pages, so it has at most this many wallets, the newest. `GET /v1/wallets` lists all. */
const MAX_LISTED = 1_000;

/**
 * Lists the wallets that a user owns or for which the user signs, alone or as a member of a key quorum, including
 * nested quorums. The newest wallets come first; archived wallets are left out.
 */
async function listUserWallets(
  context: Pick<OperationContext, 'app' | 'em'>,
  userId: string,
): Promise<WalletRow[]> {
  const database = context.em.getKysely<Tables>();
  const quorums = membershipsOf(database, { kind: 'user', member: userId });
  return database
    .selectFrom('wallets')
    .select(walletColumns)
    .where('app_id', '=', context.app.id)
    .where('archived_at_ms', 'is', null)
    .where((eb) =>
      eb.or([
        eb('owner_id', 'in', quorums),
        eb('id', 'in', eb.selectFrom('wallet_signers').select('wallet_id').where('signer_id', 'in', quorums)),
      ]),
    )
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(MAX_LISTED)
    .execute();
}

async function isQuorumMember({ em }: Pick<OperationContext, 'em'>, userId: string): Promise<boolean> {
  const quorums = membershipsOf(em.getKysely<Tables>(), { kind: 'user', member: userId });
  return (await quorums.limit(1).executeTakeFirst()) !== undefined;
}

// KYSELY: reads `intents`, whose entity belongs to a higher layer and cannot be imported here.

interface AuthenticateInput<Body> {
  readonly body: Body;
  /** The result of `authenticateUser`: the user of the token in the body. */
  readonly planned: Planned<AuthenticatedUser>;
}

/**
 * Issues a key that signs for the user of a token for at most an hour, and lists the user's wallets.
 *
 * @throws ApiError missing_or_invalid_token, invalid_data, failed_to_fetch_jwks_uri_document, and not_found when the
 * user does not exist or is not a member of a key quorum.
 */
export async function authenticateWallets(
  context: OperationContext,
  { body, planned }: AuthenticateInput<AuthenticateWalletsRequest>,
): Promise<WalletAuthenticateWithJwtResponse> {
  const { userId, sessionId } = unwrapPlan(planned);
  // CHOICE: the status is 404, because the specification only says that the request is refused. A member of a key
  // quorum that owns no wallet gets a key, because policies and other resources also have owners.
  if (!(await isQuorumMember(context, userId))) throw notFound('Wallet');
  const wallets = await listUserWallets(context, userId);
  const recipientPublicKey = recipientOf(body);
  const key = await createUserKey(context, {
    userId,
    sessionId,
    recipientPublicKey,
    ...loginOf(body, sessionId),
  });
  return { ...handOverKey(key), expires_at: key.expiresAtMs, wallets: wallets.map(walletView) };
}

/**
 * Issues a key that can authorize only the named intents for the user of a token. Users without wallets get a key, too,
 * because policies and key quorums also have owners.
 *
 * @throws ApiError missing_or_invalid_token; invalid_data, also for an intent that does not exist;
 * failed_to_fetch_jwks_uri_document; not_found
 */
export async function authenticateWalletIntents(
  context: OperationContext,
  { body, planned }: AuthenticateInput<AuthenticateWalletIntentsRequest>,
): Promise<WalletAuthenticateIntentsResponse> {
  const { userId, sessionId } = unwrapPlan(planned);
  const wallets = await listUserWallets(context, userId);
  const intentIds = body.bindings.map((binding) => binding.intentId);
  await requireIntents(context, intentIds);
  const recipientPublicKey = recipientOf(body);
  const key = await createUserKey(context, {
    ...{ userId, sessionId, intentIds, recipientPublicKey },
    ...loginOf(body, sessionId),
  });
  return {
    ...handOverKey(key),
    bindings: body.bindings,
    expires_at: key.expiresAtMs,
    wallets: wallets.map(walletView),
  };
}

async function requireIntents({ app, em }: OperationContext, ids: readonly string[]): Promise<void> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    .where('app_id', '=', app.id)
    .where('id', 'in', ids.map(lookupKey))
    .execute();
  const known = new Set(rows.map((row) => row.id));
  const missing = ids.findIndex((id) => !known.has(id));
  if (missing !== -1) throw invalidField(`/bindings/${missing}/intentId`, 'no such intent in this app');
}

/** Returns the token if it is from the app's own login. Only such tokens have no session. */
function loginOf({ user_jwt: token }: { user_jwt: string }, sessionId: string | undefined) {
  return sessionId === undefined ? { loginToken: token } : {};
}

function recipientOf(body: object): string | undefined {
  return 'recipient_public_key' in body ? (body.recipient_public_key as string) : undefined;
}
