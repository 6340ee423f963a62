import { transferFromWallet as transfer } from '../../domain/money/wallet-actions/transfer-from-wallet.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { TransferActionResponse } from '../../generated/schemas.ts';
import type { Handler } from '../../operation-context.ts';

export const transferFromWallet: Handler<'transferFromWallet'> = async ({ path, body }, context) =>
  walletActionView(await transfer(context, path.wallet_id, body)) as TransferActionResponse;
