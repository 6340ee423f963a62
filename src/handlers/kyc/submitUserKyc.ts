import { kycView } from '../../domain/money/fiat-customers/customer-view.ts';
import { submitUser } from '../../domain/money/fiat-customers/user-verification.ts';
import { type AskedCustomer, storePrepared } from '../../domain/money/fiat-customers/verify-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'submitUserKyc', AskedCustomer> = ({ path, body }, context) =>
  submitUser(context, path.user_id, body);

export const run: PreparedHandler<'submitUserKyc', AskedCustomer> = async (_, context, prepared) =>
  kycView((await storePrepared(context, prepared)).customer);
