import { listOrganizationSecrets as list } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const listOrganizationSecrets: Handler<'listOrganizationSecrets'> = async ({ path }, context) => ({
  data: await list(context, path.organization_id),
});
