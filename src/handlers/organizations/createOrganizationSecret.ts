import { createOrganizationSecret as make } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const createOrganizationSecret: Handler<'createOrganizationSecret'> = async ({ path }, context) =>
  make(context, path.organization_id);
