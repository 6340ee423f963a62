import { findOrganization } from '../../domain/organizations/find-organization.ts';
import { organizationView } from '../../domain/organizations/organization-view.ts';
import type { Handler } from '../../services.ts';

export const getOrganization: Handler<'getOrganization'> = async ({ path }, context) =>
  organizationView(await findOrganization(context, path.organization_id));
