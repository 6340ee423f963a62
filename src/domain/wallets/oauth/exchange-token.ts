import { ApiError } from '../../../errors.ts';
import type { ExchangeOauthTokenRequest, OAuthTokenSuccessResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { pollDevice } from './poll-device.ts';
import { refreshGrant } from './refresh-grant.ts';

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
    // CHOICE: nothing issues authorization codes, so none is valid.
    case 'authorization_code':
      throw new ApiError('invalid_grant');
  }
}
