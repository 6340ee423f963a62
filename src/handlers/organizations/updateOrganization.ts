import { updateOrganization } from '../../domain/access/organizations/change-organizations.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateOrganization'> = async ({ path, body }, context) =>
  organizationView(await updateOrganization(context, path.organization_id, body));
