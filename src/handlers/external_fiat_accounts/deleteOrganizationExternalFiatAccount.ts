import { deleteFiatAccount } from '../../domain/money/fiat-accounts/delete-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteOrganizationExternalFiatAccount'> = async ({ path }, context) => {
  await deleteFiatAccount(context, { type: 'organization', id: path.organization_id }, path.account_id);
  return { success: true };
};
