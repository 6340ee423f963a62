import { kybView } from '../../domain/money/fiat-customers/customer-view.ts';
import { type AskedAgain, askAgain, storeAll } from '../../domain/money/fiat-customers/refresh-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'listOrganizationKyb', AskedAgain[]> = ({ path }, context) =>
  askAgain(context, { type: 'organization', id: path.organization_id });

export const run: PreparedHandler<'listOrganizationKyb', AskedAgain[]> = async (_, context, prepared) => {
  const customers = await storeAll(context, prepared);
  return { kyb_statuses: customers.map((customer) => kybView(customer)), next_cursor: null };
};
