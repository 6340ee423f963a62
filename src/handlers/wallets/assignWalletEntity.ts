import { assignWalletEntity } from '../../domain/wallets/wallets/assign-wallet-entity.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'assignWalletEntity'> = ({ path, body }, context) =>
  assignWalletEntity(context, path.wallet_id, body);
