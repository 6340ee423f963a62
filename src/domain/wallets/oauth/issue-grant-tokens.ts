import type { OAuthTokenSuccessResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { issueAccessToken } from '../tokens/issue-tokens.ts';
import type { OauthGrant } from '../tokens/oauth-grant.entity.ts';
import { TOKEN_LIFETIME_SECONDS } from '../tokens/token-terms.ts';
import { drawSecret, hashOfSecret } from './codes.ts';
import { OauthRefreshTokenEntity } from './oauth-refresh-token.entity.ts';

/** The next pair of tokens of a grant. Its earlier refresh token must have been used. */
export async function issueGrantTokens(
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
