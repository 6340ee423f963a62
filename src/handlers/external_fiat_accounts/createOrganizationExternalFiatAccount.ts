import { organizationFiatAccountView } from '../../domain/money/fiat-accounts/account-view.ts';
import { prepareAccount, registerAccount } from '../../domain/money/fiat-accounts/register-account.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

type Found = Awaited<ReturnType<typeof prepareAccount>>;

export const prepare: Preparation<'createOrganizationExternalFiatAccount', Found> = (
  { path, body },
  context,
) => prepareAccount(context, { entity: { type: 'organization', id: path.organization_id }, body });

export const run: PreparedHandler<'createOrganizationExternalFiatAccount', Found> = async (
  { path, body },
  context,
  prepared,
) => {
  const entity = { type: 'organization', id: path.organization_id } as const;
  const account = await registerAccount(context, { entity, body, prepared });
  return { external_fiat_account: organizationFiatAccountView(account) };
};
