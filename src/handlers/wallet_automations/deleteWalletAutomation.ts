import { deleteAutomation } from '../../domain/money/automation-configs/change-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteWalletAutomation'> = async ({ path }, context) => {
  await deleteAutomation(context, path.automation_id);
  return { success: true };
};
