import { listExecutions } from '../../domain/wallets/wallet-automations/list-executions.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWalletAutomationExecutions'> = async ({ query }, context) => {
  const { wallet_id: walletId, ...page } = query;
  const { executions, nextCursor } = await listExecutions(context, { ...page, walletId });
  return { data: executions, next_cursor: nextCursor };
};
