import { findWalletAction } from '../../domain/money/wallet-actions/find-wallet-action.ts';
import { loadSteps } from '../../domain/money/wallet-actions/wallet-action-steps.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWalletAction'> = async ({ path, query }, context) => {
  const action = await findWalletAction(context, path.wallet_id, path.action_id);
  if (query.include !== 'steps') return walletActionView(action);
  return walletActionView(action, (await loadSteps(context, [action.id])).get(action.id) ?? []);
};
