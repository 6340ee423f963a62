import { createAutomation } from '../../domain/access/automations/change-automation.ts';
import { automationView } from '../../domain/access/automations/find-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWalletAutomation'> = async ({ body }, context) =>
  automationView(await createAutomation(context, body));
