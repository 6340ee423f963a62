import {
  deleteFiatAccount,
  findFiatAccount,
  listFiatAccounts,
  organizationFiatAccountView,
  planAccount,
  registerAccount,
  userFiatAccountView,
} from '../domain/money/external-fiat-accounts/external-fiat-account.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const listOrganizationExternalFiatAccounts: Handler<'listOrganizationExternalFiatAccounts'> = async (
  { path, query },
  context,
) => {
  const accounts = await listFiatAccounts(context, { type: 'organization', id: path.organization_id }, query);
  return { external_fiat_accounts: accounts.map(organizationFiatAccountView), next_cursor: null };
};

type CreateOrganizationExternalFiatAccountFound = Awaited<ReturnType<typeof planAccount>>;

export const createOrganizationExternalFiatAccount: PlannedHandler<
  'createOrganizationExternalFiatAccount',
  CreateOrganizationExternalFiatAccountFound
> = {
  plan: ({ path, body }, context) =>
    planAccount(context, { entity: { type: 'organization', id: path.organization_id }, body }),
  run: async ({ path, body }, context, planned) => {
    const entity = { type: 'organization', id: path.organization_id } as const;
    const account = await registerAccount(context, { entity, body, planned });
    return { external_fiat_account: organizationFiatAccountView(account) };
  },
};

export const deleteOrganizationExternalFiatAccount: Handler<'deleteOrganizationExternalFiatAccount'> = async (
  { path },
  context,
) => {
  await deleteFiatAccount(context, { type: 'organization', id: path.organization_id }, path.account_id);
  return { success: true };
};

export const getOrganizationExternalFiatAccount: Handler<'getOrganizationExternalFiatAccount'> = async (
  { path },
  context,
) => {
  const account = await findFiatAccount(
    context,
    { type: 'organization', id: path.organization_id },
    path.account_id,
  );
  return { external_fiat_account: organizationFiatAccountView(account) };
};

export const listUserExternalFiatAccounts: Handler<'listUserExternalFiatAccounts'> = async (
  { path, query },
  context,
) => {
  const accounts = await listFiatAccounts(context, { type: 'user', id: path.user_id }, query);
  return { external_fiat_accounts: accounts.map(userFiatAccountView), next_cursor: null };
};

type CreateUserExternalFiatAccountFound = Awaited<ReturnType<typeof planAccount>>;

export const createUserExternalFiatAccount: PlannedHandler<
  'createUserExternalFiatAccount',
  CreateUserExternalFiatAccountFound
> = {
  plan: ({ path, body }, context) =>
    planAccount(context, { entity: { type: 'user', id: path.user_id }, body }),
  run: async ({ path, body }, context, planned) => {
    const entity = { type: 'user', id: path.user_id } as const;
    const account = await registerAccount(context, { entity, body, planned });
    return { external_fiat_account: userFiatAccountView(account) };
  },
};

export const deleteUserExternalFiatAccount: Handler<'deleteUserExternalFiatAccount'> = async (
  { path },
  context,
) => {
  await deleteFiatAccount(context, { type: 'user', id: path.user_id }, path.account_id);
  return { success: true };
};

export const getUserExternalFiatAccount: Handler<'getUserExternalFiatAccount'> = async (
  { path },
  context,
) => {
  const account = await findFiatAccount(context, { type: 'user', id: path.user_id }, path.account_id);
  return { external_fiat_account: userFiatAccountView(account) };
};
