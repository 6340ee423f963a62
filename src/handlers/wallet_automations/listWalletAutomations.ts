import { automationView, listAutomations } from '../../domain/access/automations/find-automation.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWalletAutomations'> = async ({ query }, context) => {
  const { wallet_id: walletId, ...page } = query;
  const { automations, nextCursor } = await listAutomations(context, { ...page, walletId });
  return { data: automations.map(automationView), next_cursor: nextCursor };
};
