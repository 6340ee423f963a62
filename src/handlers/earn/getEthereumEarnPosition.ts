import { findVault } from '../../domain/money/earn/find-vault.ts';
import { getPosition } from '../../domain/money/earn/get-position.ts';
import { findWallet } from '../../domain/wallets/wallets/find-wallet.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getEthereumEarnPosition'> = async ({ path, query }, context) => {
  const includeArchived = query.include_archived;
  const wallet = await findWallet(context, path.wallet_id, { includeArchived });
  return getPosition(context, wallet, await findVault(context, query.vault_id));
};
