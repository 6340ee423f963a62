import { kycView } from '../../domain/money/fiat-customers/customer-view.ts';
import { askForUserLinks } from '../../domain/money/fiat-customers/user-verification.ts';
import { type AskedCustomer, storePrepared } from '../../domain/money/fiat-customers/verify-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'initiateUserKycLinks', AskedCustomer> = ({ path, body }, context) =>
  askForUserLinks(context, path.user_id, body, ['terms', 'verification']);

export const run: PreparedHandler<'initiateUserKycLinks', AskedCustomer> = async (_, context, prepared) => {
  const { customer, links } = await storePrepared(context, prepared);
  return kycView(customer, links);
};
