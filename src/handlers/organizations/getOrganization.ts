import { findOrganization } from '../../domain/access/organizations/find-organization.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getOrganization'> = async ({ path }, context) =>
  organizationView(await findOrganization(context, path.organization_id));
