import { ApiError, type ErrorCode, notFound } from '../../../errors.ts';
import type {
  ExchangeOauthTokenRequest,
  OAuthGrant as GrantView,
  OAuthTokenSuccessResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { getUser, lockUser } from '../../access/user-records/find-user.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { issueAccessToken, TOKEN_LIFETIME_SECONDS } from '../tokens/access-tokens.ts';
import { type OauthGrant, OauthGrantEntity } from '../tokens/session.entity.ts';
import { UserKeyEntity } from '../user-keys/user-key.entity.ts';
import { drawSecret, hashOfSecret } from './device-codes.ts';
import { type OauthDeviceCode, OauthDeviceCodeEntity, OauthRefreshTokenEntity } from './oauth.entity.ts';

/** CHOICE: the list has no pages, so its length is limited. */
const MAX_LISTED = 1_000;

/**
 * Lists the grants that were not revoked, newest first. A user gets the user's own grants; a caller with the app secret
 * gets all grants of the app.
 */
export async function listGrants({ app, em, proof }: OperationContext): Promise<GrantView[]> {
  const grants = await em.find(
    OauthGrantEntity,
    { appId: app.id, ...(proof.userId === undefined ? {} : { userId: proof.userId }), revokedAtMs: null },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
  return grants.map((grant) => ({
    id: grant.id,
    grant_type: 'device_code',
    created_at: new Date(grant.createdAtMs).toISOString(),
    last_used_at: new Date(grant.lastUsedAtMs).toISOString(),
  }));
}

/**
 * Revokes one of the user's own grants. A caller with the app secret can revoke any grant of the app.
 *
 * @throws ApiError not_found, also for a grant that was already revoked.
 */
export async function revokeGrant(context: OperationContext, grantId: string): Promise<void> {
  const { app, em, proof } = context;
  const where = { id: lookupKey(grantId), appId: app.id };
  const grant = await em.findOne(OauthGrantEntity, where, lockForUpdate);
  const isOwn = proof.userId === undefined || grant?.userId === proof.userId;
  if (grant === null || grant.revokedAtMs !== null || !isOwn) throw notFound('Grant');
  await endGrant(context, grant);
}

/**
 * Ends a grant: its tokens cannot be refreshed, and its keys no longer sign.
 *
 * CHOICE: the keys end immediately, although the access token with which they were obtained stays valid for up to an
 * hour.
 */
async function endGrant(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  grant: OauthGrant,
): Promise<void> {
  grant.revokedAtMs = nowMs;
  await em.flush();
  await em.nativeDelete(UserKeyEntity, { sessionId: grant.id });
}

/** Issues the next pair of tokens of a grant. The caller has already marked the previous refresh token as used. */
async function issueGrantTokens(
  context: OperationContext,
  grant: OauthGrant,
): Promise<OAuthTokenSuccessResponse> {
  const refreshToken = `rt_${drawSecret(context.entropy)}`;
  context.em.create(OauthRefreshTokenEntity, {
    id: hashOfSecret(refreshToken),
    grantId: grant.id,
    createdAtMs: context.nowMs,
    usedAtMs: null,
  });
  await context.em.flush();
  return {
    access_token: await issueAccessToken(context, { userId: grant.userId, sessionId: grant.id }),
    token_type: 'Bearer',
    expires_in: TOKEN_LIFETIME_SECONDS,
    refresh_token: refreshToken,
  };
}

const DAY_MS = 24 * 60 * 60_000;

/**
 * Exchanges the refresh token of a grant for the next pair of tokens.
 *
 * CHOICE: a token that is used twice revokes its grant immediately, without a grace period (RFC 9700 section 4.14.2),
 * because the server cannot tell which of the two callers stole it.
 *
 * @throws ApiError invalid_grant
 */
async function refreshGrant(
  context: OperationContext,
  refreshToken: string,
): Promise<OAuthTokenSuccessResponse> {
  const { em, nowMs } = context;
  const id = hashOfSecret(refreshToken);
  const known = await em.findOne(OauthRefreshTokenEntity, { id });
  if (known === null) throw new ApiError('invalid_grant');
  // INVARIANT: refreshes of a grant are serialized, so only one of them uses the token.
  const grant = await findGrantForUpdate(context, known.grantId);
  const token = await em.findOne(OauthRefreshTokenEntity, { id }, lockForUpdate);
  if (grant === null || token === null || grant.revokedAtMs !== null) throw new ApiError('invalid_grant');
  if (token.usedAtMs !== null) {
    await endGrant(context, grant);
    throw new ApiError('invalid_grant', 'the refresh token was used before: its grant is revoked', {
      keepsChanges: true,
    });
  }
  await requireLive(context, grant);
  token.usedAtMs = nowMs;
  grant.lastUsedAtMs = nowMs;
  await em.flush();
  return issueGrantTokens(context, grant);
}

function findGrantForUpdate({ app, em }: OperationContext, id: string): Promise<OauthGrant | null> {
  return em.findOne(OauthGrantEntity, { id, appId: app.id }, lockForUpdate);
}

/**
 * Refuses a grant that was unused for too long, is too old, or belongs to a frozen user.
 *
 * @throws ApiError invalid_grant
 */
async function requireLive(context: OperationContext, grant: OauthGrant): Promise<void> {
  const { refresh_idle_days: idleDays, grant_days: grantDays } = readAppSettings(
    (await findApp(context.em, context.app.id)).settings,
  ).device_flow;
  const idleMs = context.nowMs - grant.lastUsedAtMs;
  const ageMs = context.nowMs - grant.createdAtMs;
  if (idleMs >= idleDays * DAY_MS || ageMs >= grantDays * DAY_MS) {
    throw new ApiError('invalid_grant', 'the grant has expired');
  }
  const user = await getUser(context, grant.userId);
  if (user === undefined || user.row.frozen_at_ms !== null) throw new ApiError('invalid_grant');
}

/** The number of seconds that each premature poll adds to the interval permanently (RFC 8628 section 3.5). */
const SLOW_DOWN_SECONDS = 5;

/** CHOICE: a poll may be this much early. Timers of clients fire a little early, and network delays vary. */
const TOLERANCE_MS = 500;

/**
 * Handles the poll of a device, which gets its tokens once the user has approved it. The interval between polls is
 * measured with the system clock, because with a frozen sandbox clock every poll would come too soon.
 *
 * @throws ApiError invalid_grant, expired_token, slow_down, authorization_pending, access_denied
 */
async function pollDevice(context: OperationContext, deviceCode: string): Promise<OAuthTokenSuccessResponse> {
  const { app, em, nowMs } = context;
  // INVARIANT: polls for the same code are serialized, so only one of them redeems it.
  const id = hashOfSecret(deviceCode);
  const code = await em.findOne(OauthDeviceCodeEntity, { id, appId: app.id }, lockForUpdate);
  if (code === null || code.status === 'redeemed') throw new ApiError('invalid_grant');
  if (code.expiresAtMs <= nowMs) throw new ApiError('expired_token');
  if (isTooSoon(code, context)) {
    code.intervalSeconds += SLOW_DOWN_SECONDS;
    throw pollAgain('slow_down', code, context);
  }
  if (code.status === 'pending') throw pollAgain('authorization_pending', code, context);
  if (code.status === 'denied') throw new ApiError('access_denied');
  return redeem(context, code);
}

function isTooSoon(
  { polledAtMs, intervalSeconds }: OauthDeviceCode,
  { machine }: Pick<OperationContext, 'machine'>,
): boolean {
  return polledAtMs !== null && machine.now() < polledAtMs + intervalSeconds * 1000 - TOLERANCE_MS;
}

/** Stores the time of this poll, and returns the refusal after which the device polls again. */
function pollAgain(
  code: ErrorCode,
  stored: OauthDeviceCode,
  { machine }: Pick<OperationContext, 'machine'>,
): ApiError {
  stored.polledAtMs = machine.now();
  return new ApiError(code, undefined, { data: { interval: stored.intervalSeconds }, keepsChanges: true });
}

async function redeem(context: OperationContext, code: OauthDeviceCode): Promise<OAuthTokenSuccessResponse> {
  const { app, em, ids, nowMs } = context;
  const userId = code.userId ?? '';
  if ((await getUser(context, userId)) === undefined) throw new ApiError('invalid_grant');
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen) throw new ApiError('access_denied', 'the user is frozen');
  code.status = 'redeemed';
  const grant = em.create(OauthGrantEntity, {
    id: ids.uuid(),
    appId: app.id,
    userId,
    createdAtMs: nowMs,
    lastUsedAtMs: nowMs,
    revokedAtMs: null,
  });
  return issueGrantTokens(context, grant);
}

/**
 * Exchanges a device code or a refresh token for tokens.
 *
 * @throws ApiError invalid_grant, authorization_pending, slow_down, access_denied, expired_token
 */
export async function exchangeToken(
  context: OperationContext,
  body: ExchangeOauthTokenRequest,
): Promise<OAuthTokenSuccessResponse> {
  switch (body.grant_type) {
    case 'urn:ietf:params:oauth:grant-type:device_code':
      return pollDevice(context, body.device_code);
    case 'refresh_token':
      return refreshGrant(context, body.refresh_token);
    // CHOICE: this server issues no authorization codes, so none is valid.
    case 'authorization_code':
      throw new ApiError('invalid_grant');
  }
}
