import { exportWallet } from '../../domain/requests/wallet-rpc/export-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'exportWallet'> = ({ path, body }, context) =>
  exportWallet(context, path.wallet_id, body);
