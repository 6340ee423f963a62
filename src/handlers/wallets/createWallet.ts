import { createWallet } from '../../domain/wallets/wallets/create-wallet.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWallet'> = async ({ body }, context) =>
  walletView(await createWallet(context, body));
