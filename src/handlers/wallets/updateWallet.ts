import { updateWallet } from '../../domain/wallets/wallets/update-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateWallet'> = async ({ path, body }, context) =>
  walletView(await updateWallet(context, path.wallet_id, body));
