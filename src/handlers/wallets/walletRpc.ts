import { signWithWallet } from '../../domain/requests/wallet-rpc/sign-with-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const walletRpc: Handler<'walletRpc'> = ({ path, body }, context) =>
  signWithWallet(context, path.wallet_id, body);
