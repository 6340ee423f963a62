import { automationView, findAutomation } from '../../domain/access/automations/find-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWalletAutomation'> = async ({ path }, context) =>
  automationView(await findAutomation(context, path.automation_id));
