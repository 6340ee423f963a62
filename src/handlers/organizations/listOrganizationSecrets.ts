import { listOrganizationSecrets } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listOrganizationSecrets'> = async ({ path }, context) => ({
  data: await listOrganizationSecrets(context, path.organization_id),
});
