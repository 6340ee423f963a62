import { kybView } from '../../domain/money/fiat-customers/customer-view.ts';
import { askForOrganizationLinks } from '../../domain/money/fiat-customers/organization-verification.ts';
import { type AskedCustomer, storePrepared } from '../../domain/money/fiat-customers/verify-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'initiateOrganizationKybLinks', AskedCustomer> = (
  { path, body },
  context,
) => askForOrganizationLinks(context, path.organization_id, body, ['terms', 'verification']);

export const run: PreparedHandler<'initiateOrganizationKybLinks', AskedCustomer> = async (
  _,
  context,
  prepared,
) => {
  const { customer, links } = await storePrepared(context, prepared);
  return kybView(customer, links);
};
