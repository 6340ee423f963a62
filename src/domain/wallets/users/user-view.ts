import type { User } from '../../../generated/schemas.ts';
import type { StoredUser } from '../../access/user-records/user-row.ts';
import { linkedAccountView } from './linked-account-view.ts';

/** A user in wire form. Times: Unix seconds. */
export function userView({ row, linkedAccounts }: StoredUser): User {
  return {
    id: row.id,
    created_at: Math.floor(row.created_at_ms / 1000),
    is_guest: row.is_guest === 1,
    has_accepted_terms: row.has_accepted_terms === 1,
    linked_accounts: linkedAccounts.map(linkedAccountView),
    mfa_methods: JSON.parse(row.mfa_methods),
    ...(row.custom_metadata === null ? {} : { custom_metadata: JSON.parse(row.custom_metadata) }),
    ...(row.frozen_at_ms === null ? {} : { frozen_at: Math.floor(row.frozen_at_ms / 1000) }),
  };
}
