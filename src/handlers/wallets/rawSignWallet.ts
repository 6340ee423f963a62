import { rawSignWithWallet } from '../../domain/requests/wallet-rpc/raw-sign-with-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'rawSignWallet'> = ({ path, body }, context) =>
  rawSignWithWallet(context, path.wallet_id, body);
