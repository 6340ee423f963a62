import { automationView } from '../../domain/access/automations/find-automation.ts';
import { createAutomation } from '../../domain/money/automation-configs/change-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWalletAutomation'> = async ({ body }, context) =>
  automationView(await createAutomation(context, body));
