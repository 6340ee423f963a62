import { notFound } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { getLogin } from '../../access/user-records/find-user.ts';
import { claimsToBeOurs, verifyAccessToken } from '../tokens/verify-access-token.ts';
import { invalidToken, verifyCustomerToken } from '../tokens/verify-customer-token.ts';

/** The user whom a token names. */
export interface AuthenticatedUser {
  readonly userId: string;
  /** Undefined for a token of the app's own login. */
  readonly sessionId?: string;
}

/**
 * The user whom a token names: an access token of the service, or a token of the app's own login whose user id claim
 * is the `custom_user_id` of a linked account.
 *
 * Runs in preparations, since it may fetch the app's key set. The user may be deleted before the operation's
 * transaction begins.
 *
 * @throws ApiError missing_or_invalid_token, failed_to_fetch_jwks_uri_document, not_found for a user who does not
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
