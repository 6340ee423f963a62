import { ApiError } from '../../../errors.ts';
import type { OAuthTokenSuccessResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { type OauthGrant, OauthGrantEntity } from '../tokens/oauth-grant.entity.ts';
import { hashOfSecret } from './codes.ts';
import { endGrant } from './grants.ts';
import { issueGrantTokens } from './issue-grant-tokens.ts';
import { OauthRefreshTokenEntity } from './oauth-refresh-token.entity.ts';

const DAY_MS = 24 * 60 * 60_000;

/**
 * Exchanges the refresh token of a grant for the next pair of tokens.
 *
 * CHOICE: a token that is used twice revokes its grant at once, without a grace period (RFC 9700 section 4.14.2): the
 * server cannot know which of the two callers stole it.
 *
 * @throws ApiError invalid_grant
 */
export async function refreshGrant(
  context: OperationContext,
  refreshToken: string,
): Promise<OAuthTokenSuccessResponse> {
  const { em, nowMs } = context;
  const id = hashOfSecret(refreshToken);
  const known = await em.findOne(OauthRefreshTokenEntity, { id });
  if (known === null) throw new ApiError('invalid_grant');
  // INVARIANT: refreshes of a grant wait for each other, so only one of them uses the token.
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

/** Refuses a grant that was not used for too long or is too old, and one of a frozen user. */
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
