import { attachAutomations } from '../../domain/wallets/wallet-automations/attach-automations.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'attachWalletAutomations'> = async ({ path, body }, context) => ({
  data: await attachAutomations(context, path.wallet_id, body),
});
