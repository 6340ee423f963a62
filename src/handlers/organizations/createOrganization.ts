import { createOrganization as make } from '../../domain/access/organizations/change-organizations.ts';
import { organizationView } from '../../domain/access/organizations/organization-view.ts';
import type { Handler } from '../../operation-context.ts';

export const createOrganization: Handler<'createOrganization'> = async ({ body }, context) =>
  organizationView(await make(context, body));
