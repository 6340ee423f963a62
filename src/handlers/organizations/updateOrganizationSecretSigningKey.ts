import { bindOrganizationSecret } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateOrganizationSecretSigningKey'> = async ({ path, body }, context) => {
  await bindOrganizationSecret(context, path.organization_id, body);
  return { success: true };
};
