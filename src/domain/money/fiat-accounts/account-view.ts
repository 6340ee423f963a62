import type { ExternalFiatAccount, OrganizationExternalFiatAccount } from '../../../generated/schemas.ts';
import type { StoredFiatAccount } from './external-fiat-account.entity.ts';

/** A user's bank account in wire form. */
export function userFiatAccountView(account: StoredFiatAccount): ExternalFiatAccount {
  return { ...viewOf(account), user_id: account.entityId };
}

/** An organization's bank account in wire form. */
export function organizationFiatAccountView(account: StoredFiatAccount): OrganizationExternalFiatAccount {
  return { ...viewOf(account), organization_id: account.entityId };
}

function viewOf(account: StoredFiatAccount) {
  const { bankName, lastFour } = account;
  return {
    id: account.id,
    provider: account.provider as ExternalFiatAccount['provider'],
    environment: account.environment as ExternalFiatAccount['environment'],
    account_owner_name: account.accountOwnerName,
    account_type: account.accountType,
    ...(bankName === null ? {} : { bank_name: bankName }),
    currency: account.currency,
    ...(lastFour === null ? {} : { last_4: lastFour }),
    created_at: new Date(account.createdAtMs).toISOString(),
  };
}
