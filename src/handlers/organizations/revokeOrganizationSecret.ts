import { revokeOrganizationSecret } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'revokeOrganizationSecret'> = async ({ path, body }, context) => {
  await revokeOrganizationSecret(context, path.organization_id, body.secret_id);
  return { success: true };
};
