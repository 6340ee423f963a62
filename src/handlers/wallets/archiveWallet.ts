import { archiveWallet } from '../../domain/wallets/wallets/archive-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'archiveWallet'> = async ({ path }, context) =>
  walletView(await archiveWallet(context, path.wallet_id));
