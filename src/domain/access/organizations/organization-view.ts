import type { Organization } from '../../../generated/schemas.ts';
import type { OrganizationRow } from './find-organization.ts';

/** An organization as the contract shows it. Times: Unix ms. */
export function organizationView(row: OrganizationRow): Organization {
  return {
    id: row.id,
    display_name: row.display_name,
    default_key_quorum_id: row.default_key_quorum_id,
    created_at: row.created_at_ms,
    updated_at: row.updated_at_ms,
  };
}
