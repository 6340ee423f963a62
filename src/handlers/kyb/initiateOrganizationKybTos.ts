import { tosView } from '../../domain/money/fiat-customers/customer-view.ts';
import { askForOrganizationLinks } from '../../domain/money/fiat-customers/organization-verification.ts';
import { type AskedCustomer, storePrepared } from '../../domain/money/fiat-customers/verify-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'initiateOrganizationKybTos', AskedCustomer> = ({ path, body }, context) =>
  askForOrganizationLinks(context, path.organization_id, body, ['terms']);

export const run: PreparedHandler<'initiateOrganizationKybTos', AskedCustomer> = async (
  _,
  context,
  prepared,
) => {
  const { customer, links } = await storePrepared(context, prepared);
  return tosView(customer, links);
};
