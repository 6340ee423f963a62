import { deletePolicy as remove } from '../../domain/access/policies/delete-policy.ts';
import type { Handler } from '../../operation-context.ts';

export const deletePolicy: Handler<'deletePolicy'> = async ({ path }, context) => {
  await remove(context, path.policy_id);
  return { success: true };
};
