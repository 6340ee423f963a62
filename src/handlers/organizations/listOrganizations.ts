import { listOrganizations as list } from '../../domain/access/organizations/find-organization.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const listOrganizations: Handler<'listOrganizations'> = async ({ query }, context) => {
  const { organizations, nextCursor } = await list(context, query);
  return { data: organizations.map(organizationView), next_cursor: nextCursor };
};
