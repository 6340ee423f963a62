import type {
  InitiateOrganizationKybLinksRequest,
  InitiateOrganizationKybTosRequest,
  SubmitOrganizationKybRequest,
} from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { findOrganization } from '../../access/organizations/find-organization.ts';
import { checkBusiness } from './check-submission.ts';
import { requireRedirect } from './customer-contact.ts';
import { findFiatEntity } from './fiat-entity.ts';
import { getCustomer } from './find-customer.ts';
import { findProvider } from './find-provider.ts';
import { type AskedCustomer, askForLinks, askToVerify } from './verify-customer.ts';

/** Starts the verification of an organization, and makes the links to the hosted pages. */
export function askForOrganizationLinks(
  context: PlanContext,
  organizationId: string,
  input: InitiateOrganizationKybLinksRequest & InitiateOrganizationKybTosRequest,
  links: readonly ('terms' | 'verification')[],
): Promise<AskedCustomer> {
  requireRedirect(input.redirect_uri);
  return askForLinks(
    context,
    { type: 'organization', id: organizationId },
    {
      input: { ...input, links },
      readContact: async ({ id }) => ({
        email: input.email,
        name: input.business_name ?? (await findOrganization(context, id)).displayName,
      }),
    },
  );
}

/**
 * Submits data about an organization.
 *
 * @throws ApiError not_found, not_supported, unavailable; invalid_data for data that we or the provider refuse.
 */
export async function submitOrganization(
  context: PlanContext,
  organizationId: string,
  body: SubmitOrganizationKybRequest,
): Promise<AskedCustomer> {
  const entity = await findFiatEntity(context, { type: 'organization', id: organizationId });
  findProvider(context, body);
  const known = await getCustomer(context, entity, body);
  const isFirst = (known?.submittedAtMs ?? null) === null;
  checkBusiness(body.data, { isFirst, nowMs: context.nowMs });
  return askToVerify(
    context,
    { entity, known, named: body },
    { ...body, kind: 'business', given: body.data },
  );
}
