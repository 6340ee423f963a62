import { finishImport } from '../../domain/wallets/wallets/finish-import.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'submitWalletImport'> = async ({ body }, context) =>
  walletView(await finishImport(context, body));
