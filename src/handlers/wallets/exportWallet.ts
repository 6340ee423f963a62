import { exportWallet as exportKey } from '../../domain/requests/wallet-rpc/export-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const exportWallet: Handler<'exportWallet'> = ({ path, body }, context) =>
  exportKey(context, path.wallet_id, body);
