import { archiveWallet as archive } from '../../domain/wallets/wallets/archive-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const archiveWallet: Handler<'archiveWallet'> = async ({ path }, context) =>
  walletView(await archive(context, path.wallet_id));
