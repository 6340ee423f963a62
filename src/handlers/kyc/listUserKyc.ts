import { kycView } from '../../domain/money/fiat-customers/customer-view.ts';
import { type AskedAgain, askAgain, storeAll } from '../../domain/money/fiat-customers/refresh-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'listUserKyc', AskedAgain[]> = ({ path }, context) =>
  askAgain(context, { type: 'user', id: path.user_id });

export const run: PreparedHandler<'listUserKyc', AskedAgain[]> = async (_, context, prepared) => {
  const customers = await storeAll(context, prepared);
  return { kyc_statuses: customers.map((customer) => kycView(customer)), next_cursor: null };
};
