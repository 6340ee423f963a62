import { listOrganizations } from '../../domain/access/organizations/find-organization.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listOrganizations'> = async ({ query }, context) => {
  const { organizations, nextCursor } = await listOrganizations(context, query);
  return { data: organizations.map(organizationView), next_cursor: nextCursor };
};
