import type { OperationContext } from '../../../operation-context.ts';
import { signClaims } from './signing-keys.ts';
import { subjectOf, TOKEN_LIFETIME_SECONDS, tokenIssuer } from './token-terms.ts';

type TokenContext = Pick<OperationContext, 'app' | 'em' | 'ids' | 'vault' | 'nowMs' | 'prefix'>;

/**
 * An access token for one session of a user in the context's app. Claims: `sid`, `sub`, `iss`, `aud`, `iat`, `exp` an
 * hour later. Source: RFC 7519, ES256 of RFC 7518 section 3.4.
 */
export function issueAccessToken(
  context: TokenContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<string> {
  return issue(context, userId, { sid: sessionId });
}

/** An identity token with the claims of `identityClaims`. */
export function issueIdentityToken(
  context: TokenContext,
  { userId, claims }: { readonly userId: string; readonly claims: Readonly<Record<string, string>> },
): Promise<string> {
  return issue(context, userId, claims);
}

function issue(
  context: TokenContext,
  userId: string,
  claims: Readonly<Record<string, string>>,
): Promise<string> {
  const issuedAtSeconds = Math.floor(context.nowMs / 1000);
  return signClaims(context, context.app.id, {
    ...claims,
    iss: tokenIssuer(context.prefix),
    aud: context.app.id,
    sub: subjectOf(userId, context.prefix),
    iat: issuedAtSeconds,
    exp: issuedAtSeconds + TOKEN_LIFETIME_SECONDS,
  });
}
