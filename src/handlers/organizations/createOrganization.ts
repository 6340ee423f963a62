import { createOrganization } from '../../domain/access/organizations/change-organizations.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createOrganization'> = async ({ body }, context) =>
  organizationView(await createOrganization(context, body));
