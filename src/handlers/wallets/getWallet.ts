import { attachedAutomations } from '../../domain/wallets/wallet-automations/attach-automations.ts';
import { findWallet } from '../../domain/wallets/wallets/find-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWallet'> = async ({ path, query }, context) => {
  const wallet = await findWallet(context, path.wallet_id, { includeArchived: query.include_archived });
  const automations = await attachedAutomations(context, wallet);
  return { ...walletView(wallet), ...(automations.length === 0 ? {} : { automations }) };
};
