import { kybView } from '../../domain/money/fiat-customers/customer-view.ts';
import { submitOrganization } from '../../domain/money/fiat-customers/organization-verification.ts';
import { type AskedCustomer, storePrepared } from '../../domain/money/fiat-customers/verify-customer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'submitOrganizationKyb', AskedCustomer> = ({ path, body }, context) =>
  submitOrganization(context, path.organization_id, body);

export const run: PreparedHandler<'submitOrganizationKyb', AskedCustomer> = async (_, context, prepared) =>
  kybView((await storePrepared(context, prepared)).customer);
