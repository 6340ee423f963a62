import type { TransferPlan } from '../../domain/money/wallet-actions/plan-transfer.ts';
import {
  prepareTransfer,
  transferFromWallet,
} from '../../domain/money/wallet-actions/transfer-from-wallet.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { TransferActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'transferFromWallet', TransferPlan> = ({ path, body }, context) =>
  prepareTransfer(context, path.wallet_id, body);

export const run: PreparedHandler<'transferFromWallet', TransferPlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await transferFromWallet(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as TransferActionResponse;
};
