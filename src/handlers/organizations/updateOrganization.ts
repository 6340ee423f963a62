import { updateOrganization as change } from '../../domain/access/organizations/change-organizations.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const updateOrganization: Handler<'updateOrganization'> = async ({ path, body }, context) =>
  organizationView(await change(context, path.organization_id, body));
