import { detachAutomations } from '../../domain/wallets/wallet-automations/attach-automations.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'detachWalletAutomations'> = async ({ path, body }, context) => {
  await detachAutomations(context, path.wallet_id, body);
  return { success: true };
};
