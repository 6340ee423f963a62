import { ApiError } from '../errors.ts';
import type { ControlContext, HostedVerification } from './control-plane.ts';
import type { SandboxVerificationPage } from './generated/schemas.ts';

/**
 * The verification to which a link leads.
 *
 * @throws ApiError not_found
 */
export async function findVerificationPage(
  { fiat }: Pick<ControlContext, 'fiat'>,
  token: string,
): Promise<HostedVerification> {
  const page = await fiat.page(token);
  if (page === undefined) throw new ApiError('not_found', 'the link is not known');
  return page;
}

/** What the hosted page shows. */
export function verificationPageView({
  kind,
  environment,
  snapshot,
  redirectUri,
}: HostedVerification): SandboxVerificationPage {
  const { terms, verification } = snapshot;
  const offers = [
    ...(terms.link === undefined ? [] : ['accept_terms' as const]),
    ...(verification.link === undefined ? [] : ['complete' as const, 'decline' as const]),
  ];
  return {
    kind,
    environment,
    status: snapshot.status,
    terms: terms.status,
    verification: verification.status,
    actions: offers,
    requirements_due: [...snapshot.requirementsDue],
    rejection_reasons: [...(verification.rejectionReasons ?? [])],
    redirect_uri: redirectUri,
  };
}
