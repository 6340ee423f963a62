import { deleteOrganization as remove } from '../../domain/access/organizations/change-organizations.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteOrganization: Handler<'deleteOrganization'> = async ({ path }, context) => {
  await remove(context, path.organization_id);
  return undefined;
};
