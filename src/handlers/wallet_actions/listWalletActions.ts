import { listWalletActions } from '../../domain/money/wallet-actions/find-wallet-action.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWalletActions'> = async ({ path, query }, context) => {
  const { actions, nextCursor } = await listWalletActions(context, path.wallet_id, query);
  return { data: actions.map((action) => walletActionView(action)), next_cursor: nextCursor };
};
