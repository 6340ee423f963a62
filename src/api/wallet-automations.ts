import { automationView, findAutomation, listAutomations } from '../domain/access/automations/automation.ts';
import {
  createAutomation,
  deleteAutomation,
  updateAutomation,
} from '../domain/money/automation-configs/automation-config.ts';
import {
  type Holding,
  planReindex,
  reindexAutomation,
} from '../domain/money/automation-runs/reindex-automation.ts';
import { listExecutions } from '../domain/wallets/wallet-automations/wallet-automation.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const listWalletAutomations: Handler<'listWalletAutomations'> = async ({ query }, context) => {
  const { wallet_id: walletId, ...page } = query;
  const { automations, nextCursor } = await listAutomations(context, { ...page, walletId });
  return { data: automations.map(automationView), next_cursor: nextCursor };
};

export const createWalletAutomation: Handler<'createWalletAutomation'> = async ({ body }, context) =>
  automationView(await createAutomation(context, body));

export const listWalletAutomationExecutions: Handler<'listWalletAutomationExecutions'> = async (
  { query },
  context,
) => {
  const { wallet_id: walletId, ...page } = query;
  const { executions, nextCursor } = await listExecutions(context, { ...page, walletId });
  return { data: executions, next_cursor: nextCursor };
};

export const reindexWalletAutomation: PlannedHandler<'reindexWalletAutomation', Holding> = {
  plan: ({ body }, context) => planReindex(context, body),
  run: ({ body }, context, planned) => reindexAutomation(context, body, planned),
};

export const deleteWalletAutomation: Handler<'deleteWalletAutomation'> = async ({ path }, context) => {
  await deleteAutomation(context, path.automation_id);
  return { success: true };
};

export const getWalletAutomation: Handler<'getWalletAutomation'> = async ({ path }, context) =>
  automationView(await findAutomation(context, path.automation_id));

export const updateWalletAutomation: Handler<'updateWalletAutomation'> = async ({ path, body }, context) =>
  automationView(await updateAutomation(context, path.automation_id, body));
