import type {
  InitiateUserKycLinksRequest,
  InitiateUserKycTosRequest,
  SubmitUserKycRequest,
} from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { checkPerson } from './check-submission.ts';
import { getEmail, requireEmail, requireRedirect } from './customer-contact.ts';
import { findFiatEntity } from './fiat-entity.ts';
import { getCustomer } from './find-customer.ts';
import { findProvider } from './find-provider.ts';
import { type AskedCustomer, askForLinks, askToVerify } from './verify-customer.ts';

/** Starts the verification of a user, and makes the links to the hosted pages. */
export function askForUserLinks(
  context: PlanContext,
  userId: string,
  input: InitiateUserKycLinksRequest & InitiateUserKycTosRequest,
  links: readonly ('terms' | 'verification')[],
): Promise<AskedCustomer> {
  requireRedirect(input.redirect_uri);
  return askForLinks(
    context,
    { type: 'user', id: userId },
    {
      input: { ...input, links },
      readContact: async ({ id }) => ({ email: await requireEmail(context, id, input.email) }),
    },
  );
}

/**
 * Submits data about a user.
 *
 * @throws ApiError not_found, not_supported, unavailable; invalid_data for data that we or the provider refuse.
 */
export async function submitUser(
  context: PlanContext,
  userId: string,
  body: SubmitUserKycRequest,
): Promise<AskedCustomer> {
  const entity = await findFiatEntity(context, { type: 'user', id: userId });
  findProvider(context, body);
  const known = await getCustomer(context, entity, body);
  const isFirst = (known?.submittedAtMs ?? null) === null;
  checkPerson(body.data, { isFirst, nowMs: context.nowMs });
  const email = body.data.email ?? (isFirst ? await getEmail(context, entity.id) : undefined);
  const data = email === undefined ? body.data : { ...body.data, email };
  return askToVerify(
    context,
    { entity, known, named: body },
    { ...body, kind: 'person', data, given: body.data },
  );
}
