import type { Organization } from '../../../generated/schemas.ts';
import type { StoredOrganization } from './organization.entity.ts';

/** An organization in wire form. Times: Unix ms. */
export function organizationView(organization: StoredOrganization): Organization {
  return {
    id: organization.id,
    display_name: organization.displayName,
    default_key_quorum_id: organization.defaultKeyQuorumId,
    created_at: organization.createdAtMs,
    updated_at: organization.updatedAtMs,
  };
}
