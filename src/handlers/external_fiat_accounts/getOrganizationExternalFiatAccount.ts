import { organizationFiatAccountView } from '../../domain/money/fiat-accounts/account-view.ts';
import { findFiatAccount } from '../../domain/money/fiat-accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getOrganizationExternalFiatAccount'> = async ({ path }, context) => {
  const account = await findFiatAccount(
    context,
    { type: 'organization', id: path.organization_id },
    path.account_id,
  );
  return { external_fiat_account: organizationFiatAccountView(account) };
};
