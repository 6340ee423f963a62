import { automationView } from '../../domain/access/automations/find-automation.ts';
import { updateAutomation } from '../../domain/money/automation-configs/change-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateWalletAutomation'> = async ({ path, body }, context) =>
  automationView(await updateAutomation(context, path.automation_id, body));
