import { assignWalletEntity as assign } from '../../domain/wallets/wallets/assign-wallet-entity.ts';
import type { Handler } from '../../operation-context.ts';

export const assignWalletEntity: Handler<'assignWalletEntity'> = ({ path, body }, context) =>
  assign(context, path.wallet_id, body);
