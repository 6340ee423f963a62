import { deletePolicy } from '../../domain/access/policies/delete-policy.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deletePolicy'> = async ({ path }, context) => {
  await deletePolicy(context, path.policy_id);
  return { success: true };
};
