import { organizationFiatAccountView } from '../../domain/money/fiat-accounts/account-view.ts';
import { listFiatAccounts } from '../../domain/money/fiat-accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listOrganizationExternalFiatAccounts'> = async ({ path, query }, context) => {
  const accounts = await listFiatAccounts(context, { type: 'organization', id: path.organization_id }, query);
  return { external_fiat_accounts: accounts.map(organizationFiatAccountView), next_cursor: null };
};
