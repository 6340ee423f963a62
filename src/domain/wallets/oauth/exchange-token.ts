import { ApiError, type ErrorCode } from '../../../errors.ts';
import type { ExchangeOauthTokenRequest, OAuthTokenSuccessResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { getUser, lockUser } from '../../access/user-records/find-user.ts';
import { OauthGrantEntity } from '../tokens/session.entity.ts';
import { hashOfSecret } from './device-codes.ts';
import { type OauthDeviceCode, OauthDeviceCodeEntity } from './oauth.entity.ts';
import { issueGrantTokens, refreshGrant } from './oauth-grants.ts';

/** RFC 8628 section 3.5: every poll that comes too soon adds this to the interval permanently. */
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

/** The refusal after which the device polls again. Stores the time of this poll. */
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
