import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { OperationContext, Services } from '../../../operation-context.ts';
import type { UserTokens } from '../../../ports/user-tokens.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { getVerificationKey } from './signing-keys.ts';
import { tokenIssuer, userIdOf } from './token-terms.ts';

/** The claims of an access token that others use. */
export interface UserSession {
  readonly userId: string;
  readonly sessionId: string;
}

type VerifyContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'prefix'>;

/**
 * The user and session of a valid access token of the app; undefined when the token is malformed, expired, for another app or not
 * an access token, or when the user no longer exists. Tokens of a frozen user live to their end.
 */
export async function verifyAccessToken(
  context: VerifyContext,
  token: string,
): Promise<UserSession | undefined> {
  const kid = kidOf(token);
  if (kid === undefined) return undefined;
  const key = await getVerificationKey(context, { appId: context.app.id, kid });
  if (key === undefined) return undefined;
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['ES256'],
      typ: 'JWT',
      issuer: tokenIssuer(context.prefix),
      audience: context.app.id,
      // An identity token has the same signing key but no session.
      requiredClaims: ['sub', 'sid', 'exp'],
      currentDate: new Date(context.nowMs),
    });
    const userId = userIdOf(payload.sub ?? '', context.prefix);
    const user = await getUser(context, userId);
    if (user === undefined) return undefined;
    return { userId, sessionId: String(payload.sid) };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** Whether a token claims to be issued by the service, so that only `verifyAccessToken` may accept it. */
export function claimsToBeOurs(token: string, prefix: string): boolean {
  try {
    return decodeJwt(token).iss === tokenIssuer(prefix);
  } catch {
    return false;
  }
}

/** User tokens over the stored signing keys. */
export function createUserTokens(orm: Orm, { prefix }: Pick<Services, 'prefix'>): UserTokens {
  return {
    async verify(token, { appId, nowMs }) {
      const context = { em: orm.em.fork(), app: { id: appId }, nowMs, prefix };
      return verifyAccessToken(context, token);
    },
  };
}

// A signing key's id. The header is not verified yet, so its `kid` can be any JSON value.
const KID = /^[a-z0-9]{1,64}$/;

function kidOf(token: string): string | undefined {
  try {
    const kid: unknown = decodeProtectedHeader(token).kid;
    return typeof kid === 'string' && KID.test(kid) ? kid : undefined;
  } catch {
    return undefined;
  }
}
