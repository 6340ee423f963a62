import { createOrganization as make } from '../../domain/organizations/change-organizations.ts';
import { organizationView } from '../../domain/organizations/organization-view.ts';
import type { Handler } from '../../services.ts';

export const createOrganization: Handler<'createOrganization'> = async ({ body }, context) =>
  organizationView(await make(context, body));
