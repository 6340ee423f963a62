import { revokeOrganizationSecret as revoke } from '../../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../../operation-context.ts';

export const revokeOrganizationSecret: Handler<'revokeOrganizationSecret'> = async (
  { path, body },
  context,
) => {
  await revoke(context, path.organization_id, body.secret_id);
  return { success: true };
};
