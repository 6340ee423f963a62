import {
  findWalletAction,
  listWalletActions as listWalletActionsVerb,
  walletActionView,
} from '../domain/money/wallet-actions/wallet-action.ts';
import { loadSteps } from '../domain/money/wallet-actions/wallet-action-steps.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listWalletActions: Handler<'listWalletActions'> = async ({ path, query }, context) => {
  const { actions, nextCursor } = await listWalletActionsVerb(context, path.wallet_id, query);
  return { data: actions.map((action) => walletActionView(action)), next_cursor: nextCursor };
};

export const getWalletAction: Handler<'getWalletAction'> = async ({ path, query }, context) => {
  const action = await findWalletAction(context, path.wallet_id, path.action_id);
  if (query.include !== 'steps') return walletActionView(action);
  return walletActionView(action, (await loadSteps(context, [action.id])).get(action.id) ?? []);
};
