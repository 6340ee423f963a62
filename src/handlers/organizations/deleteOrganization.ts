import { deleteOrganization } from '../../domain/access/organizations/change-organizations.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteOrganization'> = async ({ path }, context) => {
  await deleteOrganization(context, path.organization_id);
  return undefined;
};
