import { attachedAutomations } from '../../domain/wallets/wallet-automations/attach-automations.ts';
import { findWallet } from '../../domain/wallets/wallets/find-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWallet'> = async ({ path, query }, context) => {
  const wallet = await findWallet(context, path.wallet_id, { includeArchived: query.include_archived });
  const view = walletView(wallet);
  if (!wallet.has_automations) return view;
  const automations = await attachedAutomations(context, wallet);
  return automations.length === 0 ? view : { ...view, automations };
};
