import { exportWallet as exportKey } from '../../domain/wallets/export-wallet.ts';
import type { Handler } from '../../services.ts';

export const exportWallet: Handler<'exportWallet'> = ({ path, body }, context) =>
  exportKey(context, path.wallet_id, body);
