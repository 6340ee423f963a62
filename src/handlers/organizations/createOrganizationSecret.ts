import { createOrganizationSecret } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createOrganizationSecret'> = async ({ path }, context) =>
  createOrganizationSecret(context, path.organization_id);
